//go:build !linux

package app

// forgetStart does nothing: there is no way to overwrite what we were started
// with.
func (a *App) forgetStart() {}
