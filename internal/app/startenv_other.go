//go:build !linux

package app

// eraseStartEnv does nothing: this system offers no way to overwrite the initial environment.
func (a *Site) eraseStartEnv() {}
