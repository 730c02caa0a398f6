"""Labs over several machines: which machines, what each of them gets of a plan, and how they are reached."""
