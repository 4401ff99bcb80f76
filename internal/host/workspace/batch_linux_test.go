package workspace_test

import "testing"

// Reading in batches, moving and deleting keep inside as well, whoever swaps
// directories for links meanwhile.
func TestBatchesNeverLeadOutside(t *testing.T) {
	ws, dir, evil := open(t)
	put(t, dir+"/d/f", "in")
	put(t, evil+"/f", "out")
	put(t, evil+"/victim", "out")
	linkUnnamed(t, evil, dir+"/trap")
	read := 0
	swapping(t, dir+"/d", dir+"/trap", func() {
		for range 1500 {
			for b := range ws.Batches(t.Context(), ".") {
				r, err := b.Open()
				if err != nil {
					continue
				}
				for _, name := range b.Names {
					if data, err := r.Read(name, 100); err == nil && string(data) != "in" {
						t.Errorf("read %q", data)
					} else if err == nil {
						read++
					}
				}
				r.Close()
			}
			_ = ws.WriteFileMode("d/p", []byte("in"), 0o600, nil)
			_ = ws.Delete("d/victim")
		}
	})
	if names := list(t, evil); len(names) != 2 || get(t, evil+"/f") != "out" {
		t.Errorf("outside now holds %q", names)
	}
	if read == 0 {
		t.Error("nothing was ever read, so nothing was tested")
	}
}
