from headrace.table.data_view import DataView as DataView
from headrace.table.data_view import ListView as ListView
from headrace.table.data_view import MapView as MapView
