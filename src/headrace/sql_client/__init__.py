"""`headrace sql`: statements that the user types, and their rows on a terminal.

    prompt --> SqlClient --> SessionConnection --> a gateway session, in this process or behind REST
                   |
                   +--> tableau: rows below each other     ResultView: a live table or changelog on the whole screen

It reads what the gateway says and knows neither Spark nor how statements are executed.
"""
