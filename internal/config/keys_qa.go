package config

// qaKeys are the settings of questions to the user that memory can answer.
func qaKeys() []key {
	return []key{
		enumKey("qa.auto", "on: a question that the user has answered is answered from memory; context: the answer is only told to the model; off: neither",
			func(s *Settings) *string { return &s.QA.Auto }, "on", "context", "off"),
		intKey("qa.ttl_days", "days that an answer counts after the user gave it last", func(s *Settings) *int { return &s.QA.TTLDays }, 1, 3650),
		intKey("qa.threshold", "per cent of confidence from which on memory answers by itself", func(s *Settings) *int { return &s.QA.Threshold }, 50, 100),
	}
}
