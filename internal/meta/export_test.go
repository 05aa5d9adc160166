package meta

// Stages are the stages of the interview, in their order.
func Stages() []string { return stages }
