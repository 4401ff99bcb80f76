package workspace

// Walks turns the watch off, as where there is none.
func (w *Workspace) Walks() { w.watch.close() }
