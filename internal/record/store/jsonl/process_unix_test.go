//go:build unix

package jsonl_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/record/store/jsonl"
	"coder/testkit/eventtest"
)

// The test binary is its own second process: with this variable set it plays
// the part that the variable names.
const roleVar = "JSONL_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch role, dir := os.Getenv(roleVar), os.Getenv("JSONL_TEST_DIR"); role {
	case "":
		os.Exit(m.Run())
	case "write":
		err = playWriter(dir)
	case "hold":
		err = playHolder(dir)
	case "fill":
		err = playFiller(dir)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

type process struct {
	*exec.Cmd
	out *bufio.Reader
	in  io.WriteCloser
}

func start(t *testing.T, role, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleVar+"="+role, "JSONL_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &process{cmd, bufio.NewReader(out), in}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the other process said %q, then %v", s, err)
	}
	return strings.TrimSpace(s)
}

// playWriter appends batches for ever and says which record was acknowledged.
func playWriter(dir string) error {
	ctx := context.Background()
	s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever})
	if _, err := s.Claim(ctx, "a"); err != nil {
		return err
	}
	last := uint64(0)
	for r, err := range s.Read(ctx, "a", 0) {
		if err != nil {
			return err
		}
		last = r.Seq
	}
	samples := eventtest.Samples()
	long := event.LocalAdded{Output: strings.Repeat("long ", 20_000)}
	for {
		var batch []event.Event
		for range 1 + rand.IntN(4) {
			batch = append(batch, samples[rand.IntN(len(samples))])
		}
		if rand.IntN(8) == 0 {
			batch = append(batch, long)
		}
		if err := s.Append(ctx, last, eventtest.Records("a", last, batch...)...); err != nil {
			return err
		}
		last += uint64(len(batch))
		if _, err := fmt.Println(last); err != nil {
			return err
		}
	}
}

func TestKilledWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const rounds = 50
	var dir string
	for i := range rounds {
		if i%5 == 0 {
			dir = t.TempDir() // a long session takes its time
		}
		p := start(t, "write", dir)
		acked := p.line(t)
		time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(p.out)
		p.Wait()
		if lines := strings.Fields(string(rest)); len(lines) > 0 && bytes.HasSuffix(rest, []byte("\n")) {
			acked = lines[len(lines)-1]
		}
		want, err := strconv.ParseUint(acked, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		checkKilled(t, dir, want)
	}
}

// checkKilled sees that all up to acked is there, without gaps, and that the
// session can be taken over.
func checkKilled(t *testing.T, dir string, acked uint64) {
	t.Helper()
	s := jsonl.Open(dir, jsonl.Options{Fsync: jsonl.FsyncNever})
	release := eventtest.Claim(t, s, "a")
	defer release()
	last := uint64(0)
	for r, err := range s.Read(t.Context(), "a", 0) {
		if err != nil || r.Seq != last+1 {
			t.Fatalf("record %d after %d, %v", r.Seq, last, err)
		}
		last = r.Seq
	}
	if last < acked {
		t.Fatalf("%d records are left of %d", last, acked)
	}
	if _, err := s.Verify("a"); err != nil {
		t.Fatal(err)
	}
	eventtest.Append(t, s, "a", last, event.LocalAdded{})
}

// playHolder claims the session, appends one record, and holds it until its
// input ends.
func playHolder(dir string) error {
	s := jsonl.Open(dir, jsonl.Options{Program: "holder"})
	if _, err := s.Claim(context.Background(), "a"); err != nil {
		return err
	}
	if err := s.Append(context.Background(), 0, eventtest.Records("a", 0, event.TaskStarted{TaskID: "t"})...); err != nil {
		return err
	}
	fmt.Println("held")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "hold", dir)
	if got := p.line(t); got != "held" {
		t.Fatal(got)
	}
	s := jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t)})
	_, err := s.Claim(t.Context(), "a")
	var claimed *event.ClaimedError
	if !errors.As(err, &claimed) || !strings.HasPrefix(claimed.Holder, fmt.Sprintf("process %d (holder) on ", p.Process.Pid)) {
		t.Fatalf("claim of a session that another process holds: %v", err)
	}
	err = s.Append(t.Context(), 1, eventtest.Records("a", 1, event.LocalAdded{})...)
	if !errors.Is(err, event.ErrConflict) {
		t.Fatalf("append to it: %v, want ErrConflict", err)
	}
	want := eventtest.Records("a", 0, event.TaskStarted{TaskID: "t"})
	eventtest.Expect(t, s, "a", 0, want) // looking is free
	p.Process.Kill()
	p.Wait()
	eventtest.Claim(t, s, "a") // the dead hold nothing
	eventtest.Append(t, s, "a", 1, event.LocalAdded{})
}

const fileLimit = 64 << 10

// playFiller writes under a limit on the size of files, checks what a failed
// Append leaves, and goes on when there is room again.
func playFiller(dir string) error {
	var rooms syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &rooms); err != nil {
		return err
	}
	tight := rooms
	tight.Cur = fileLimit
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &tight); err != nil {
		return err
	}
	s := jsonl.Open(dir, jsonl.Options{})
	if _, err := s.Claim(context.Background(), "a"); err != nil {
		return err
	}
	f := filler{s: s, dir: dir}
	for range 5 {
		if err := f.overflow(); !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("append beyond the limit: %w, want EFBIG", err)
		}
	}
	if err := f.add(event.TaskStarted{TaskID: "small"}); err != nil {
		return fmt.Errorf("append of what still fits: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &rooms); err != nil {
		return err
	}
	if err := f.add(f.batch()...); err != nil {
		return fmt.Errorf("append with room again: %w", err)
	}
	fmt.Println(f.last)
	return nil
}

type filler struct {
	s    *jsonl.Store
	dir  string
	last uint64
	turn int
}

func (f *filler) add(events ...event.Event) error {
	err := f.s.Append(context.Background(), f.last, eventtest.Records("a", f.last, events...)...)
	if err == nil {
		f.last += uint64(len(events))
	}
	return err
}

// batch has a big message and small records of the other logs, the message in
// the first place, in the middle, or in the last.
func (f *filler) batch() []event.Event {
	events := []event.Event{event.TaskStarted{TaskID: "t"}, event.ToolCallRequested{CallID: "c"}, event.TaskFailed{Reason: "r"}}
	events[f.turn%3] = event.LocalAdded{Output: strings.Repeat("x", 5000)}
	return events
}

// overflow appends until that fails, and checks that the failure left nothing.
func (f *filler) overflow() error {
	for {
		f.turn++
		before := f.size()
		err := f.add(f.batch()...)
		if err == nil {
			continue
		}
		if after := f.size(); after != before {
			return fmt.Errorf("a failed append left %v bytes where there were %v", after, before)
		}
		last := uint64(0)
		for r, err := range f.s.Read(context.Background(), "a", 0) {
			if err != nil {
				return err
			}
			last = r.Seq
		}
		if last != f.last {
			return fmt.Errorf("%d records, want %d", last, f.last)
		}
		return err
	}
}

func (f *filler) size() (sizes [3]int64) {
	for i, l := range event.AllLogs {
		if info, err := os.Stat(filepath.Join(f.dir, "a", l.String()+".jsonl")); err == nil {
			sizes[i] = info.Size()
		}
	}
	return sizes
}

func TestFilesThatMayNotGrow(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "fill", dir)
	want := p.line(t)
	p.Wait()
	expectRecords(t, dir, want)
}

func expectRecords(t *testing.T, dir, want string) {
	t.Helper()
	s := jsonl.Open(dir, jsonl.Options{OnRepair: noRepair(t)})
	eventtest.Claim(t, s, "a")
	n := 0
	for _, err := range s.Read(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if fmt.Sprint(n) != want {
		t.Errorf("%d records are left, want %s", n, want)
	}
}

func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root on Linux can make a disk to fill")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "coder-test", dir).CombinedOutput(); err != nil {
		t.Skipf("no disk to fill: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	s := jsonl.Open(dir, jsonl.Options{})
	release := eventtest.Claim(t, s, "a")
	f := filler{s: s, dir: dir}
	ballast := filepath.Join(dir, "ballast")
	pendingWrite(t, ballast, strings.Repeat("x", 32<<10))
	for range 3 {
		if err := f.overflow(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("append on a full disk: %v, want ENOSPC", err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := f.add(f.batch()...); err != nil {
		t.Fatalf("append with room again: %v", err)
	}
	release()
	expectRecords(t, dir, fmt.Sprint(f.last))
}
