package search_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// opens counts the files in directories that are opened from now on.
func opens(t *testing.T, dirs []string) (count func() int) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skipf("what is opened cannot be watched: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, dir := range dirs {
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
			t.Skipf("what is opened cannot be watched: %v", err)
		}
	}
	return func() (n int) {
		buf := make([]byte, 1<<20)
		for {
			size, err := unix.Read(fd, buf)
			if err == unix.EAGAIN {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			for b := buf[:size]; len(b) >= unix.SizeofInotifyEvent; {
				mask, length := uint32(b[4])|uint32(b[5])<<8|uint32(b[6])<<16|uint32(b[7])<<24, int(b[12])|int(b[13])<<8
				if mask&unix.IN_Q_OVERFLOW != 0 {
					t.Fatal("more was opened than could be counted")
				}
				if mask&unix.IN_ISDIR == 0 {
					n++
				}
				b = b[unix.SizeofInotifyEvent+length:]
			}
		}
	}
}

// A search that has what it returns opens no more files.
func TestGrepOpensWhatItReturns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const dirs, files = 20, 200
	dir := t.TempDir()
	var watched []string
	for i := range dirs {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d", i))
		watched = append(watched, sub)
		for j := range files {
			put(t, filepath.Join(sub, fmt.Sprintf("f%03d", j)), "common\ncommon\n")
		}
	}
	put(t, filepath.Join(dir, "d19", "f199"), "rare\n")
	tools := openAt(t, dir)
	ahead := (runtime.GOMAXPROCS(0) + 2) * 64 // batches that are handed out meanwhile
	for _, tc := range []struct {
		args        string
		least, most int
	}{
		{`{"pattern":"rare"}`, dirs * files, dirs * files},
		{`{"pattern":"common","max_matches":10}`, 5, ahead + 10},
		{`{"pattern":"common","output_mode":"files_with_matches","max_matches":10}`, 10, ahead + 10},
		{`{"pattern":"com+on","output_mode":"count","max_matches":10}`, 10, ahead + 10},
	} {
		count := opens(t, watched)
		must(t, tools, "grep", tc.args)
		if n := count(); n < tc.least || n > tc.most {
			t.Errorf("%s opened %d files, at most %d are needed", tc.args, n, tc.most)
		}
	}
}
