"""What everything else stands on: specs, operators and their kinds, records, interpreters, `grad`.

Read in this order: `errors`, `dtype`, `slots`, `spec`, `record`, `op`, `interpreter`, `grad`.
"""
