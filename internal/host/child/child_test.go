package child

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEnvironmentIsOnlyWhatIsGiven(t *testing.T) {
	t.Setenv("PROVIDER_API_KEY", "secret")
	dir := t.TempDir()
	l, err := Start([]string{"/bin/sh", "-c", "env; tty 2>&1; pwd"}, dir, []string{"GIVEN=1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := l.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			break
		}
	}
	l.Close()
	l.Wait()
	if got := out.String(); strings.Contains(got, "secret") || !strings.Contains(got, "GIVEN=1\n") || !strings.Contains(got, dir) {
		t.Errorf("the server sees:\n%s", got)
	}
}

func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var kept tailBuffer
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 2*maxStderr), 0, 6).Draw(t, "sizes") {
			b := []byte(strings.Repeat(string(rune('a'+n%26)), n))
			all = append(all, b...)
			if m, err := kept.Write(b); m != n || err != nil {
				t.Fatalf("wrote %d, %v", m, err)
			}
		}
		if want := string(all[max(0, len(all)-maxStderr):]); kept.String() != want {
			t.Fatalf("kept %d bytes of %d", len(kept.String()), len(all))
		}
	})
}

// TestEndIsWaitedFor: a server that heeds the end of its input ends by itself,
// one that heeds nothing is ended.
func TestEndIsWaitedFor(t *testing.T) {
	for _, script := range []string{"cat; echo bye >&2", "trap '' TERM; while :; do sleep 1000; done"} {
		p, err := Start([]string{"/bin/sh", "-c", script}, t.TempDir(), []string{"PATH=/usr/bin:/bin"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		grace := 10 * time.Millisecond
		if strings.HasPrefix(script, "cat") {
			grace = time.Hour // it needs none
		}
		p.CloseInput(grace)
		if <-p.Done(); strings.HasPrefix(script, "cat") && p.ExitReport() != "bye" {
			t.Errorf("%s: %q", script, p.ExitReport())
		}
	}
}
