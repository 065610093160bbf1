"""The manifests in docs/kubernetes: schema, names that must agree, and options that headrace must know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.config import Configuration
from headrace.spark.requirements import check_asked

FOLDER = Path(__file__).parents[2] / "docs" / "kubernetes"


def manifests(*names: str) -> list[dict[str, Any]]:
    files = [FOLDER / f"{name}.yaml" for name in names] or sorted(FOLDER.glob("*.yaml"))
    return [each for path in files for each in yaml.safe_load_all(path.read_text())]


def found(kind: str, *names: str) -> list[dict[str, Any]]:
    return [each for each in manifests(*names) if each["kind"] == kind]


def options() -> dict[str, str]:
    (config_map,) = found("ConfigMap")
    return {key: str(value) for key, value in yaml.safe_load(config_map["data"]["headrace.yaml"]).items()}


def pods() -> list[dict[str, Any]]:
    return [each["spec"]["template"] for kind in ("Deployment", "Job") for each in found(kind)]


def executor_template() -> dict[str, Any]:
    (config_map,) = found("ConfigMap")
    return dict(yaml.safe_load(config_map["data"]["executor.yaml"]))


@pytest.mark.parametrize(
    "manifest", manifests(), ids=lambda each: f"{each['kind']}-{each['metadata']['name']}"
)
def test_a_manifest_follows_the_schema_of_the_api(manifest: dict[str, Any]) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate (make setup)")
    validator.validate(manifest, validator.latest_version(), strict=True)


def test_a_field_that_the_api_does_not_have_is_found() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate (make setup)")
    (deployment,) = found("Deployment")
    deployment["spec"]["replica"] = 2
    with pytest.raises(Exception, match="replica"):
        validator.validate(deployment, validator.latest_version(), strict=True)


def test_the_template_of_executors_follows_the_schema_of_the_api() -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate (make setup)")
    template = executor_template()
    # Spark fills in name and image.
    template["spec"]["containers"][0]["image"] = "image"
    validator.validate(template, validator.latest_version(), strict=True)


def test_headrace_knows_every_option() -> None:
    configuration = Configuration(options())
    check_asked(configuration.spark_settings())
    assert configuration.spark_settings()["spark.executor.cores"] == "2"


def test_services_find_their_pods_and_pods_their_volumes() -> None:
    labels = [pod["metadata"]["labels"] for pod in pods()]
    for service in found("Service"):
        assert service["spec"]["selector"] in labels
    config_maps = {each["metadata"]["name"] for each in found("ConfigMap")}
    secrets = {each["metadata"]["name"] for each in found("Secret")}
    for pod in pods():
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        for mount in pod["spec"]["containers"][0]["volumeMounts"]:
            volume = volumes[mount["name"]]
            assert volume.get("configMap", {}).get("name") in config_maps | {None}
            assert volume.get("secret", {}).get("secretName") in secrets | {None}


def test_drivers_run_as_the_account_that_may_start_executors() -> None:
    (account,) = found("ServiceAccount")
    (role,) = found("Role")
    (binding,) = found("RoleBinding")
    name = account["metadata"]["name"]
    assert {pod["spec"]["serviceAccountName"] for pod in pods()} == {name}
    assert options()["spark.kubernetes.authenticate.driver.serviceAccountName"] == name
    assert [each["name"] for each in binding["subjects"]] == [name]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (rule,) = role["rules"]
    assert {"pods", "configmaps"} <= set(rule["resources"])
    assert {"create", "get", "list", "watch", "delete"} <= set(rule["verbs"])


def test_executors_reach_the_driver_at_the_ports_of_its_service() -> None:
    ports = {int(options()["spark.driver.port"]), int(options()["spark.driver.blockManager.port"])}
    for service, pod in zip(found("Service", "application"), found("Job", "application"), strict=True):
        words = pod["spec"]["template"]["spec"]["containers"][0]["command"]
        address = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
        assert f"spark.driver.host={address}" in words
        assert ports <= {port["port"] for port in service["spec"]["ports"]}


def test_commands_of_pods_are_commands_of_headrace(tmp_path: Path) -> None:
    for pod in pods():
        _, command, *words = pod["spec"]["containers"][0]["command"]
        shown = CliRunner().invoke(cli, [command, "--help"])
        assert shown.exit_code == 0
        for flag in (word for word in words if word.startswith("-")):
            assert flag in shown.output
        Configuration({**options(), **dict(word.split("=", 1) for word in words if "=" in word)})
