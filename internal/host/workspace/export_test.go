package workspace

// Walks turns the watch off, as where there is none.
func (w *Workspace) Walks() {
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	w.watch.stop()
}

// SetClock has the file system seem to have another time.
func (w *Workspace) SetClock(clock func() FileTime) { w.clock = clock }
