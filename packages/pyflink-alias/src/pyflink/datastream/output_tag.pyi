from headrace.datastream.output_tag import OutputTag as OutputTag
from headrace.common.typeinfo import RowTypeInfo as RowTypeInfo
from headrace.common.typeinfo import TypeInformation as TypeInformation
from headrace.common.typeinfo import Types as Types
