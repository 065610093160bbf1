from headrace.datastream.time_domain import TimeDomain as TimeDomain
