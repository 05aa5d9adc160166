package proc

func makePollable(int) {}
