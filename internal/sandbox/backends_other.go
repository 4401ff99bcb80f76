//go:build !linux && !darwin

package sandbox

func backends(Options) []backend { return nil }
