package sandbox

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// journaled runs a script through a line, with a journal, and returns what it touched
// in the workspace, by names from there.
func (w world) journaled(t *testing.T, j *Journal, line Wrapper, script string) (touched []string, known bool) {
	t.Helper()
	m := j.Mark()
	line = j.Attach(line)
	cmd := w.command(t, line, script)
	runtime.LockOSThread() // the command dies with the thread that started it
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seen, known := j.Since(m)
	for path := range seen.files {
		touched = append(touched, path)
	}
	for path := range seen.trees {
		touched = append(touched, path+"/")
	}
	for i, path := range touched {
		touched[i] = strings.TrimPrefix(path, w.work+"/")
	}
	slices.Sort(touched)
	return touched, known
}

// The journal names what a command writes, makes, moves and removes, and nothing that
// it only reads.
func TestConfinedJournal(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		j := new(Journal)
		defer j.Close()
		line, err := s.Wrap(w.limits())
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			script string
			want   []string
		}{
			{"cat main.go > /dev/null; ls dir; test -e main.go", nil},
			{"echo x > new; echo y >> main.go", []string{"main.go", "new"}},
			{"mkdir -p a/b; cd a/b && echo x > ../c; rmdir ../b", []string{"a", "a/b", "a/c"}},
			{"echo 1 > from; mv from to; rm to", []string{"from", "from/", "to", "to/"}},
			{"ln -s main.go link; echo z > link; rm link", []string{"link", "main.go"}},
			{"ln -s dir way; echo z > way/other; rm way", []string{"dir/other", "way"}},
			{"chmod +x main.go; truncate -s 1 dir/file", []string{"dir/file", "main.go"}},
			{"sed -i s/f/g/ dir/file", nil},
			{"echo x > \"$(printf 'a\\377')\"; (sh -c 'echo deep > deep' &) ; wait; sleep 0.1", []string{"a\xff", "deep"}},
		} {
			got, known := w.journaled(t, j, line, tc.script)
			if tc.want == nil && strings.HasPrefix(tc.script, "sed") {
				if !slices.Contains(got, "dir/file/") || !known {
					t.Errorf("%s: %q %v", tc.script, got, known)
				}
				continue
			}
			if !slices.Equal(got, tc.want) || !known {
				t.Errorf("%s: touched %q, known %v, want %q", tc.script, got, known, tc.want)
			}
		}
		if seen, known := j.Since(j.Mark()); !known || len(seen.files)+len(seen.trees) > 0 {
			t.Errorf("after all: %v %v", seen, known)
		}
	})
}

// The journal counts what a command does to a file, and not what it only tries; a file that
// it opens once more through a descriptor is opened twice.
func TestConfinedJournalCounts(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		j := new(Journal)
		defer j.Close()
		line, err := s.Wrap(w.limits())
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			script, file string
			want         Touch
		}{
			{"echo x >> main.go; echo y >> main.go", "main.go", Touch{Touched: true, Opened: 2}},
			{"echo x > a; mv a main.go", "main.go", Touch{Touched: true, Moved: 1}},
			{"exec 7> b; echo x > /dev/fd/7; echo x > /proc/self/fd/7; rm b", "b", Touch{Touched: true, Opened: 3, Removed: 1}},
			{"echo x | tee /dev/stderr 2> c > /dev/null", "c", Touch{Touched: true, Opened: 2}},
			{"i=0; while [ $i -lt 40 ]; do echo x >> d; i=$((i+1)); done", "d", Touch{Touched: true, Opened: math.MaxInt32}},
			{"mkdir e; echo x > e/f; mv e g", "g/f", Touch{true, math.MaxInt32, math.MaxInt32, math.MaxInt32, true}},
			{"chmod +x main.go", "main.go", Touch{Touched: true, StillOpen: true}},
		} {
			m := j.Mark()
			w.journaled(t, j, line, tc.script)
			if seen, known := j.Since(m); !known || seen.File(filepath.Join(w.work, tc.file)) != tc.want {
				t.Errorf("%s: %+v %v, want %+v", tc.script, seen.File(filepath.Join(w.work, tc.file)), known, tc.want)
			}
		}
	})
}

// What a command has touched that began before is touched still, as long as it runs.
func TestConfinedJournalOfWhatRunsOn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		j := new(Journal)
		defer j.Close()
		line, err := s.Wrap(w.limits())
		if err != nil {
			t.Fatal(err)
		}
		cmd := w.command(t, j.Attach(line), "exec 5> log; echo up; read x; echo $x >&5")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		m := j.Mark()
		in.Write([]byte("late\n"))
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(w.work, "log")
		if seen, known := j.Since(m); !known || !seen.File(log).Touched {
			t.Errorf("while it ran: %v %v", seen, known)
		}
		if seen, known := j.Since(j.Mark()); !known || seen.File(log).Touched {
			t.Errorf("after it ended: %v %v", seen, known)
		}
	})
}

// Without a sandbox a command of root is watched, too. That of anybody else may have
// to gain privileges, and is not.
func TestJournalOfACommandThatIsNotConfined(t *testing.T) {
	w := newWorld(t)
	j := new(Journal)
	defer j.Close()
	got, known := w.journaled(t, j, Supervised(self(t), Bounds{}), "echo x > new")
	if root := os.Getuid() == 0; known != root || root && !slices.Equal(got, []string{"new"}) {
		t.Errorf("touched %q, known %v", got, known)
	}
	if _, known := j.Since(Mark{}); known != (os.Getuid() == 0) {
		t.Errorf("since ever: known %v", known)
	}
	m := j.Mark()
	j.Attach(Wrapper{})
	if _, known := j.Since(m); known {
		t.Error("a command without a helper is taken for one that touches nothing")
	}
}

// BenchmarkJournal is what it costs a command that makes and removes files.
func BenchmarkJournal(b *testing.B) {
	for _, kept := range []bool{false, true} {
		name := map[bool]string{false: "without", true: "with"}[kept]
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			s := findOnly(b, Namespaces)
			line, err := s.Wrap(w.limits())
			if err != nil {
				b.Fatal(err)
			}
			if kept {
				j := new(Journal)
				defer j.Close()
				line = j.Attach(line)
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var busy time.Duration
			for b.Loop() {
				cmd := w.command(b, line, "i=0; while [ $i -lt 5000 ]; do echo x > f$i; i=$((i+1)); done; rm f*")
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				busy += cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
			}
			b.ReportMetric(float64(busy.Microseconds())/float64(b.N)/10000, "cpu-us/op")
		})
	}
}
