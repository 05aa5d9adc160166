package learn

import "reprise/internal/learn/sign"

// The few words of package sign that are used everywhere here.

func clip(s string, n int) string { return sign.Clip(s, n) }

func shortHash(parts ...string) string { return sign.Hash(parts...) }

func saidKey(sentence string) string { return sign.SaidKey(sentence) }

func isUUID(s string) bool { return sign.IsUUID(s) }
