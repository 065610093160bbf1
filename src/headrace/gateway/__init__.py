"""The SQL gateway: sessions in which clients run statements and fetch their rows, as Flink's gateway does.

    client --> rest/resources/gateway.py --> Sessions --> Session --> StatementOperation --> table/ (the environment)
                                             limits,      SET, catalogs,   a thread, rows in
                                             idle ones    one statement    portions by token
                                                          at a time

It knows tables and no server: `rest/` speaks HTTP, and the environment of a session gets its executor from whoever
starts the gateway.
"""
