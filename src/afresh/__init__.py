"""Ask one dataset as many questions as you like and keep error bars that hold."""
