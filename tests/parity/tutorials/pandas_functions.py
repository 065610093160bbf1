"""Python functions over pandas: a scalar one, an aggregate, and the whole table as a data frame."""

import pandas as pd
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col
from pyflink.table.udf import udaf, udf


@udf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def fahrenheit(celsius: pd.Series) -> pd.Series:
    return celsius * 1.8 + 32


@udf(result_type=DataTypes.STRING())
def shout(text, times):
    return None if text is None else text.upper() + "!" * times


@udaf(result_type=DataTypes.FLOAT(), func_type="pandas")
def spread(values: pd.Series) -> float:
    return float(values.max() - values.min())


def main():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("parallelism.default", "1")
    rows = [("oslo", -3.5, 1), ("rome", 14.0, 2), ("oslo", 1.0, 3), ("rome", 16.25, 1), (None, 20.0, 2)]
    kind = DataTypes.ROW(
        [
            DataTypes.FIELD("city", DataTypes.STRING()),
            DataTypes.FIELD("celsius", DataTypes.DOUBLE()),
            DataTypes.FIELD("n", DataTypes.INT()),
        ]
    )
    table = t_env.from_elements(rows, kind)
    table.select(
        shout(col("city"), col("n")).alias("name"), fahrenheit(col("celsius")).alias("f")
    ).execute().print()
    table.group_by(col("city")).select(col("city"), spread(col("celsius")).alias("spread")).execute().print()
    frame = table.filter(col("n") < 3).to_pandas()
    print(frame.sort_values(["celsius"]).to_string(index=False))
    print(list(frame.columns), [str(kind) for kind in frame.dtypes])


if __name__ == "__main__":
    main()
