from headrace.datastream.timerservice import TimerService as TimerService
