"""Results that jobs have kept for later ones: `stream.cache()`, Flink's cluster data sets."""

from __future__ import annotations

from concurrent.futures import Future

from headrace.datastream.cached_data_stream import cached_results
from headrace.rest.context import RestContext
from headrace.rest.errors import RestError
from headrace.rest.http import Body, Request
from headrace.rest.resources.savepoints import OperationStatus, Triggered, operation_future, operation_status
from headrace.rest.routing import Endpoint

_SCOPE = ("dataset",)


class DataSet(Body, rename="camel"):
    id: str
    is_complete: bool


class DataSets(Body, rename="camel"):
    data_sets: list[DataSet]


def datasets(context: RestContext, request: Request) -> DataSets:
    return DataSets(
        data_sets=[
            DataSet(id=dataset_id, is_complete=result.is_complete)
            for dataset_id, result in cached_results().items()
        ]
    )


def delete(context: RestContext, request: Request) -> Triggered:
    dataset_id = request.params["datasetid"]
    result = cached_results().get(dataset_id)
    if result is None:
        raise RestError(404, f"Data set {dataset_id} not found.")

    def begin() -> Future[None]:
        done: Future[None] = Future()
        try:
            result.invalidate()
            done.set_result(None)
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            done.set_exception(error)
        return done

    return Triggered(request_id=context.operations.start(_SCOPE, begin))


def deletion_status(context: RestContext, request: Request) -> OperationStatus:
    return operation_status(operation_future(context, _SCOPE, request))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/datasets",
        "The results that `cache()` keeps in this process.",
        datasets,
        DataSets,
        is_slow=True,
    ),
    Endpoint(
        "GET",
        "/datasets/delete/{triggerid}",
        "The status of a deletion of a kept result.",
        deletion_status,
        OperationStatus,
    ),
    Endpoint(
        "DELETE",
        "/datasets/{datasetid}",
        "Delete a kept result.",
        delete,
        Triggered,
        status=202,
        is_slow=True,
    ),
)
