from headrace.datastream.output_tag import OutputTag as OutputTag
