//go:build !linux

package app

// eraseStartEnv does nothing: there is no way to overwrite what we were started
// with.
func (a *App) eraseStartEnv() {}
