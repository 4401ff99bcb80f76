package app

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

func TestADamagedLabelFileIsKept(t *testing.T) {
	s := &Store{dir: t.TempDir()}
	path := filepath.Join(s.dir, labelsFile)
	damaged := `{"one": {"title": "mine"}, "two": {"ti`
	if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), "three", "new"); err == nil {
		t.Error("a title was given beside a file that cannot be read")
	}
	if kept, _ := os.ReadFile(path); string(kept) != damaged {
		t.Errorf("the file is now %q", kept)
	}
}

func TestTitlesGivenAtOnceAllStay(t *testing.T) {
	s := &Store{dir: t.TempDir()}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := s.Rename(t.Context(), strconv.Itoa(i), "title"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if labels, err := s.readLabels(); err != nil || len(labels) != 20 {
		t.Errorf("%d of 20 titles are there, %v", len(labels), err)
	}
}
