package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
)

// What can be wrong after a round, in the order of the tally.
const (
	lost         = "lost"         // an acknowledged record, or what a call that went well did
	twice        = "twice"        // a call took effect more than once
	unrecorded   = "unrecorded"   // a call took effect that nobody allowed on record
	unverifiable = "unverifiable" // a log does not hold, or its books are not closed
	stuck        = "stuck"        // a process or a session did not come to its end
	crashed      = "crashed"      // a process panicked
	orphaned     = "orphans"      // processes that outlive the round
	leftovers    = "leftovers"    // files that nobody asked for
)

var faults = []string{lost, twice, unrecorded, unverifiable, stuck, crashed, orphaned, leftovers}

// TestSoak lets two sessions at a time work in one workspace, kills their
// processes and fails their disks at random, answers their questions from
// elsewhere, and takes them up again until they are done. Whatever happened, the
// books and the world agree then. CODER_SOAK is the number of rounds and
// CODER_SOAK_SEED the seed of the first one; the seeds of the others follow it.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	rounds, seed := 10, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("CODER_SOAK")); err == nil {
		rounds, seed = n, uint64(time.Now().Unix())
	}
	if n, err := strconv.ParseUint(os.Getenv("CODER_SOAK_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	var (
		sum   tally
		seeds = make(chan uint64)
		both  sync.WaitGroup
	)
	for range 2 {
		both.Go(func() {
			for s := range seeds {
				t.Run(strconv.FormatUint(s, 10), func(t *testing.T) { sum.add(soak(t, s)) })
			}
		})
	}
	for i := range rounds {
		seeds <- seed + uint64(i)
	}
	close(seeds)
	both.Wait()
	t.Logf("%d rounds from seed %d: %s", rounds, seed, &sum)
	if sum.did["commands"] == 0 || sum.did["kills"] == 0 || sum.did["answers"] == 0 {
		t.Errorf("nothing was put to the test: %v", sum.did)
	}
}

// tally is what several rounds found.
type tally struct {
	mu    sync.Mutex // guards the fields below
	count map[string]int
	did   map[string]int
}

func (y *tally) add(r *round) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.count == nil {
		y.count, y.did = map[string]int{}, map[string]int{}
	}
	for k, n := range r.found {
		y.count[k] += n
	}
	for k, n := range r.did {
		y.did[k] += n
	}
}

func (y *tally) String() string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "%s %d, ", f, y.count[f])
	}
	fmt.Fprintf(&b, "of %d processes (%d killed, %d on a failing disk), %d commands, %d edits, %d new files, %d answers",
		y.did["processes"], y.did["kills"], y.did["failing disks"], y.did["commands"], y.did["edits"], y.did["writes"], y.did["answers"])
	return b.String()
}

// round is one workspace with two sessions.
type round struct {
	*program
	mark    string // in the environment of every process of the round
	effects string // the file that commands leave their tokens in
	acks    string // the file that says which records were acknowledged

	mu    sync.Mutex // guards the fields below
	found map[string]int
	did   map[string]int
}

func (r *round) report(what, format string, args ...any) {
	r.t.Errorf(what+": "+format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[what]++
}

func (r *round) count(what string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did[what] += n
}

// soak plays one round.
func soak(t *testing.T, seed uint64) *round {
	dir := t.TempDir()
	r := &round{program: programIn(t, dir), mark: "CODER_SOAK_MARK=" + dir, found: map[string]int{}, did: map[string]int{}}
	r.effects, r.acks = filepath.Join(dir, "effects"), filepath.Join(dir, "acks")
	r.env = append(r.env, r.mark, "CODER_TEST_ACKS="+r.acks)
	r.file("shared.txt", "s1:\ns2:\n")
	var both sync.WaitGroup
	for i := range uint64(2) {
		l := &life{round: r, id: fmt.Sprint("s", i+1), chance: rand.New(rand.NewPCG(seed, i)), runs: new(atomic.Int64)}
		both.Go(l.live)
	}
	both.Wait()
	r.checkProcesses()
	r.startAgain()
	r.check()
	if keep := os.Getenv("CODER_SOAK_KEEP"); keep != "" && t.Failed() {
		_ = os.CopyFS(filepath.Join(keep, strconv.FormatUint(seed, 10)), os.DirFS(dir))
	}
	return r
}

// startAgain starts the program once more, with nobody beside it: what killed
// processes left is removed then. They have all ended: a start that ends while it
// waits for one that is about to leaves the note about it for another time.
func (r *round) startAgain() {
	l := &life{round: r, id: "s1", runs: new(atomic.Int64), chance: rand.New(rand.NewPCG(0, 0))}
	l.runs.Store(1000) // not one of its life
	if out, stderr, code := l.process(false, "-p", "-r", l.id, "once more"); code != 0 || out != "all done\n" {
		r.report(stuck, "the last start gave %q, code %d: %s", out, code, stderr)
	}
}

// life is what becomes of one session in a round.
type life struct {
	*round
	id     string
	chance *rand.Rand
	ask    []string // the flags that say what is asked, and how

	runs *atomic.Int64 // processes so far
}

// How often a session is disturbed, at most, and how many processes may be
// needed afterwards to get it done.
const (
	mostDisturbed = 4
	mostCalm      = 8
)

// endOfPatience is when a process is taken for stuck. It decides nothing else.
const endOfPatience = 15 * time.Minute

// live disturbs the session for a while and then lets it come to its end.
func (l *life) live() {
	l.ask = [][]string{{"--auto-approve"}, {"--auto-approve"}, {"--on-ask", "park"}, {"--on-ask", "wait"}}[l.chance.IntN(4)]
	for range 1 + l.chance.IntN(mostDisturbed) {
		l.next(true)
	}
	var said []string
	for range mostCalm {
		out, stderr, code := l.next(false)
		if (code == 0 || code == 30) && strings.HasSuffix(out, "all done\n") {
			return
		}
		said = append(said, fmt.Sprintf("code %d: %s%s", code, out, stderr))
	}
	l.report(stuck, "session %s is not done after %d undisturbed runs:\n%s", l.id, mostCalm, strings.Join(said, "\n"))
}

// next runs the process that comes next in the session, and disturbs it or not.
func (l *life) next(disturbed bool) (stdout, stderr string, code int) {
	rs, _ := readSession(l.ws, l.id)
	ended := len(rs) > 0 && turnEnded(rs)
	question := openQuestion(rs)
	var args []string
	switch {
	case len(rs) == 0:
		args = append([]string{"-p", "--session-id", l.id, "go"}, l.ask...)
	case question != "" && (!disturbed || l.chance.IntN(2) == 0):
		args = l.answer(question)
	case ended || l.chance.IntN(4) == 0:
		args = append([]string{"-p", "-r", l.id, "and now"}, l.asking()...)
	default:
		args = append([]string{"-p", "-r", l.id}, l.asking()...)
	}
	return l.process(disturbed, args...)
}

// asking is how a session that is taken up asks: now and then it does not, though
// a question may be open.
func (l *life) asking() []string {
	if l.chance.IntN(6) == 0 {
		return []string{"--auto-approve"}
	}
	return l.ask
}

func (l *life) answer(question string) []string {
	l.count("answers", 1)
	args := []string{"respond", question, "--option", []string{"approve", "approve", "reject"}[l.chance.IntN(3)]}
	if l.ask[0] == "--auto-approve" {
		return append(args, l.ask...)
	}
	return append(args, "--on-ask", "park")
}

// turnEnded reports whether nothing of the session is unfinished.
func turnEnded(rs []event.Record) bool {
	for _, r := range slices.Backward(rs) {
		switch r.Event.(type) {
		case event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
			return true
		case event.TaskCreated:
			return false
		}
	}
	return true
}

// openQuestion is the id of the question that nobody has answered, or "".
func openQuestion(rs []event.Record) (id string) {
	for _, r := range rs {
		switch e := r.Event.(type) {
		case event.InteractionRequested:
			id = e.ID
		case event.InteractionResponded, event.TaskCompleted, event.TaskFailed, event.TaskCanceled:
			id = ""
		}
	}
	return id
}

// process runs one process to its end and, where it waits for an answer, answers
// from another one.
func (l *life) process(disturbed bool, args ...string) (stdout, stderr string, code int) {
	l.count("processes", 1)
	c := l.cmd(append(args, "--script", l.script(disturbed))...)
	var out, errs safeBuffer
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = endOfPatience
	var kills []blow
	if disturbed {
		c.Env = append(slices.Clip(c.Env), l.trouble()...)
		kills = l.blows()
	}
	helper := l.helper()
	if err := c.Start(); err != nil {
		l.report(stuck, "start: %v", err)
		return "", "", -1
	}
	ended := make(chan struct{})
	var others sync.WaitGroup
	if slices.Contains(args, "wait") {
		others.Go(func() { helper.answerWhoWaits(&errs, disturbed, ended) })
	}
	others.Go(func() {
		for _, k := range kills {
			if !passes(k.after, ended) {
				return
			}
			l.count("kills", 1)
			_ = c.Process.Signal(k.with)
		}
		if passes(endOfPatience, ended) {
			_ = c.Process.Signal(syscall.SIGQUIT)
			_ = passes(time.Second, ended)
			_ = c.Process.Kill()
			l.report(stuck, "%q does not end; it said:\n%s", args, errs.String())
		}
	})
	_ = c.Wait()
	close(ended)
	others.Wait()
	if said := errs.String(); strings.Contains(said, "panic: ") || strings.Contains(said, "fatal error: ") || strings.Contains(said, "DATA RACE") {
		l.report(crashed, "%q: %s", args, said)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// passes waits for d and reports whether it passed before the end came.
func passes(d time.Duration, end <-chan struct{}) bool {
	select {
	case <-end:
		return false
	case <-time.After(d):
		return true
	}
}

// helper acts on the same session from elsewhere, with chances of its own.
func (l *life) helper() *life {
	return &life{round: l.round, id: l.id, ask: []string{"--on-ask", "park"}, runs: l.runs, chance: rand.New(rand.NewPCG(l.chance.Uint64(), 0))}
}

var askedFor = regexp.MustCompile(`answer with: coder respond (\S+)`)

// answerWhoWaits answers the questions of a process that waits for that, as it
// says to.
func (l *life) answerWhoWaits(said *safeBuffer, disturbed bool, ended <-chan struct{}) {
	for passes(time.Duration(5+l.chance.IntN(40))*time.Millisecond, ended) {
		if asked := askedFor.FindAllStringSubmatch(said.String(), -1); len(asked) > 0 {
			l.process(disturbed && l.chance.IntN(3) == 0, l.answer(asked[len(asked)-1][1])...)
		}
	}
}

// blow is a signal at an instant.
type blow struct {
	after time.Duration
	with  os.Signal
}

// blows are the signals that a process gets.
func (l *life) blows() []blow {
	at := func() time.Duration { return time.Duration(l.chance.IntN(700)) * time.Millisecond }
	switch l.chance.IntN(8) {
	case 0, 1, 2, 3:
		return []blow{{at(), syscall.SIGKILL}}
	case 4:
		return []blow{{at(), syscall.SIGTERM}}
	case 5:
		return []blow{{at(), syscall.SIGTERM}, {at() / 10, syscall.SIGKILL}}
	}
	return nil
}

// trouble is what is wrong with the world of a process, as variables of its
// environment.
func (l *life) trouble() (env []string) {
	if l.chance.IntN(3) == 0 {
		l.count("kills", 1)
		env = append(env, fmt.Sprint("CODER_TEST_DIE=", 1+l.chance.IntN(30), []string{"", "+"}[l.chance.IntN(2)]))
	}
	if l.chance.IntN(3) == 0 {
		l.count("failing disks", 1)
		how := []string{"EIO", "ENOSPC", "EDQUOT", "EMFILE", "EROFS"}[l.chance.IntN(5)]
		env = append(env, fmt.Sprint("CODER_TEST_DISK=", 1+l.chance.IntN(80), " ", how, []string{"", " ever", " short", " short ever"}[l.chance.IntN(4)]))
	}
	return env
}

// script writes what the model says to one process. Every call that does
// something has a token of its own, so whatever runs twice shows.
func (l *life) script(disturbed bool) string {
	run := l.runs.Add(1)
	replies := 0
	if disturbed {
		replies = 1 + l.chance.IntN(3)
	}
	ids := l.chance.IntN(4) > 0 // else the model uses the same ones in every process
	var b strings.Builder
	for i := range replies {
		for j := range 1 + l.chance.IntN(3) {
			token := fmt.Sprintf("%s-%d-%d-%d_", l.id, run, i, j)
			name, args := l.call(token)
			if name == "edit" {
				b.WriteString("call read {\"path\": \"shared.txt\"}\n")
			}
			if ids {
				name += " id=" + token
			}
			fmt.Fprintf(&b, "call %s %s\n", name, jsonx.MustMarshal(args))
		}
		fmt.Fprintf(&b, "wait %dms\n---\n", l.chance.IntN(30))
	}
	b.WriteString("say all done\nrepeat\n")
	path := filepath.Join(filepath.Dir(l.ws), fmt.Sprintf("model-%s-%d", l.id, run))
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		l.report(stuck, "%v", err)
	}
	return path
}

type args map[string]any

// call is a call that leaves token somewhere.
func (l *life) call(token string) (string, args) {
	echo := fmt.Sprintf("echo %s >> %s", token, l.effects)
	nap := fmt.Sprintf("sleep 0.0%d", l.chance.IntN(10))
	switch l.chance.IntN(8) {
	case 0, 1:
		return "bash", args{"command": echo + "; " + nap}
	case 2:
		return "bash", args{"command": nap + "; " + echo}
	case 3:
		return "bash", args{"command": "sleep 300 & " + echo}
	case 4:
		return "bash", args{"command": echo + "; sleep 300", "timeout": 100}
	case 5:
		return "write", args{"path": token + ".txt", "content": token}
	}
	return "edit", args{"path": "shared.txt", "old_string": l.id + ":\n", "new_string": l.id + ":\n" + token + "\n"}
}

var aToken = regexp.MustCompile(`s\d+-\d+-\d+-\d+_`)

// check holds the books of the round against the world.
func (r *round) check() {
	r.checkProcesses()
	records := map[string][]event.Record{}
	allowed, well := map[string]string{}, map[string]string{} // token to tool
	for _, id := range []string{"s1", "s2"} {
		rs, err := readSession(r.ws, id)
		if err == nil {
			err = wellFormedSession(r.ws, id)
		}
		if err != nil {
			r.report(unverifiable, "session %s: %v", id, err)
		}
		if out, stderr, code := r.run("audit", "verify", id); code != 0 {
			r.report(unverifiable, "session %s: code %d: %s%s", id, code, out, stderr)
		}
		records[id] = rs
		told(rs, allowed, well)
	}
	r.checkAcks(records)
	r.checkEffects(allowed, well)
	r.checkFiles(allowed)
}

// told finds the calls that were let run, and those that went well.
func told(rs []event.Record, allowed, well map[string]string) {
	running := map[string]string{} // call to token
	for _, r := range rs {
		switch e := r.Event.(type) {
		case event.ToolCallRequested:
			token := aToken.FindString(string(e.Input))
			running[e.CallID] = token
			if e.Verdict == "allow" {
				allowed[token] = e.Tool
			}
		case event.ToolCallCompleted:
			var out struct {
				OK   bool `json:"ok"`
				Exit int  `json:"exit_code"`
			}
			if json.Unmarshal(e.Output, &out) == nil && out.OK && out.Exit == 0 && !e.IsError {
				well[running[e.CallID]] = e.Tool
			}
		}
	}
}

// checkAcks finds every acknowledged record as it was.
func (r *round) checkAcks(records map[string][]event.Record) {
	text, _ := os.ReadFile(r.acks)
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, _, _ := strings.Cut(rest, " ")
		seq, err := strconv.Atoi(number)
		rs := records[id]
		if err != nil || seq < 1 || seq > len(rs) {
			r.report(lost, "record %q is not among the %d", line, len(rs))
		} else if is := ack(rs[seq-1]); is != line {
			r.report(lost, "record %q is now %q", line, is)
		}
	}
}

// checkEffects looks for each token in the world.
func (r *round) checkEffects(allowed, well map[string]string) {
	effects, _ := os.ReadFile(r.effects)
	shared, _ := os.ReadFile(filepath.Join(r.ws, "shared.txt"))
	files, _ := filepath.Glob(filepath.Join(r.ws, "*_.txt"))
	there := map[string]int{}
	for _, token := range aToken.FindAllString(string(effects)+string(shared)+strings.Join(files, " "), -1) {
		there[token]++
	}
	for token, n := range there {
		if n > 1 {
			r.report(twice, "%s is there %d times", token, n)
		}
		if allowed[token] == "" {
			r.report(unrecorded, "%s was never let run", token)
		}
	}
	for token, tool := range well {
		if token == "" {
			continue // it only reads
		}
		r.count(map[string]string{"bash": "commands", "edit": "edits", "write": "writes"}[tool], 1)
		if there[token] == 0 {
			r.report(lost, "%s %s went well and is not there", tool, token)
		}
	}
	for _, path := range files {
		if text, err := os.ReadFile(path); err != nil || string(text) != strings.TrimSuffix(filepath.Base(path), ".txt") {
			r.report(lost, "%s holds %q, %v", path, text, err)
		}
	}
}

// own are the files that a session has, below the home and below the workspace.
var own = regexp.MustCompile(`^(\.coder/(key|workspaces/[0-9a-f]+|heads/s\d-[0-9a-f]+\.jsonl|undo/[0-9a-f]+/(\.gitignore|objects/../[0-9a-f]+|starts/start_[0-9a-z]+\.start))` +
	`|ws/\.coder/(\.gitignore|cache/code\.index|sessions/s\d\.json|runs/s\d/.+|undo/(\.gitignore|objects/../[0-9a-f]+)` +
	`|log/s\d/(lock|(torn-\d+-)?(events|audit(\.2)?|conversation)\.jsonl)))$`)

// checkFiles looks for what should not be left: whatever is neither the
// person's, nor of the test, nor what a session has.
func (r *round) checkFiles(allowed map[string]string) {
	base := filepath.Dir(r.ws)
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(base, path)
		waits := filepath.Dir(rel) == ".coder/answers" // a folder for a question
		switch token := strings.TrimSuffix(strings.TrimPrefix(rel, "ws/"), ".txt"); {
		case err != nil || d.IsDir() && !waits:
			return err
		case waits, filepath.Dir(rel) != "." && rel != "ws/shared.txt" && allowed[token] != "write" && !own.MatchString(rel):
			r.report(leftovers, "%s", rel)
		}
		return nil
	})
	if err != nil {
		r.report(leftovers, "%v", err)
	}
}

// checkProcesses looks for processes that were not ended with those of the
// round. One that is about to end is given the time.
func (r *round) checkProcesses() {
	var left []string
	for range 9000 {
		if left = marked(r.mark); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.report(orphaned, "%s", strings.Join(left, "; "))
}

// marked are the processes that have mark in their environment, where the system
// tells.
func marked(mark string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(mark+"\x00")) {
			continue
		}
		what, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		found = append(found, filepath.Base(filepath.Dir(path))+" "+string(bytes.ReplaceAll(what, []byte{0}, []byte(" "))))
	}
	return found
}

// acknowledged is a store that writes down, in the file that CODER_TEST_ACKS
// names, every record that the one below has taken.
type acknowledged struct {
	event.Store
	path string
}

func (a acknowledged) Append(ctx context.Context, last uint64, rs ...event.Record) error {
	if err := a.Store.Append(ctx, last, rs...); err != nil {
		return err
	}
	var lines strings.Builder
	for _, r := range rs {
		lines.WriteString(ack(r))
	}
	f, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(lines.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
	return nil
}

// ack is a record in a line.
func ack(r event.Record) string {
	name, _ := event.WireName(r.Event)
	return fmt.Sprintf("%s %d %s %x\n", r.Session, r.Seq, name, sha256.Sum256(jsonx.MustMarshal(r.Event)))
}
