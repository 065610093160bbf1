"""REST: shows and steers the jobs of a process, with the paths and answers of Flink's monitoring API.

    server (HTTP) -> application (security, routing, errors) -> resources/* (one module a subject) -> dispatcher

The HTTP library is known to `server` alone. Bodies are typed with msgspec, which writes JSON and the schemas of
the OpenAPI document. Jobs that have ended are answered from the archive that was rendered when they ended.
"""
