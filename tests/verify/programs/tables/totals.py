"""Sound: running totals and their top two, of rows that are generated."""

from __future__ import annotations

from headrace.table import EnvironmentSettings, TableEnvironment

if __name__ == "__main__":
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    rows = [(f"customer-{number % 5}", number) for number in range(60)]
    t_env.create_temporary_view("orders", t_env.from_elements(rows, ["customer", "amount"]))
    t_env.execute_sql(
        """
        SELECT customer, total, place FROM (
            SELECT customer, total, ROW_NUMBER() OVER (ORDER BY total DESC, customer) AS place
            FROM (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer)
        ) WHERE place <= 2
        """
    ).print()
