package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// audited is a program with several sessions of a hundred calls each, and the number of their audit records.
func audited(t *testing.T, sessions int) (p *program, records int) {
	t.Helper()
	p = newProgram(t)
	p.file("a.txt", "a\n")
	script := p.file("calls", strings.Repeat("call read {\"path\": \"a.txt\"}\n", 100)+"---\nsay done\n")
	for i := range sessions {
		if _, stderr, code := p.run("-p", "--session-id", fmt.Sprint("s", i), "--script", script, "go"); code != 0 {
			t.Fatalf("%d %s", code, stderr)
		}
	}
	logs, err := filepath.Glob(filepath.Join(p.ws, ".coder", "log", "*", "audit.2.jsonl"))
	if err != nil || len(logs) != sessions {
		t.Fatalf("%v, %v", logs, err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		records += bytes.Count(text, []byte("\n"))
	}
	return p, records
}

// killed starts the program some times and kills it at any moment, then lets it end.
func (p *program) interrupted(t *testing.T, times int, args ...string) {
	t.Helper()
	for range times {
		c := p.cmd(args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case <-time.After(time.Duration(rand.IntN(120)) * time.Millisecond):
			_ = c.Process.Kill()
			<-ended
		case <-ended:
		}
	}
	if _, stderr, code := p.run(args...); code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
}

type shippedLine struct {
	ID     string          `json:"id"`
	Record json.RawMessage `json:"record"`
}

func shippedLines(t *testing.T, text string) (ids map[string]int) {
	t.Helper()
	ids = map[string]int{}
	for line := range strings.Lines(text) {
		var one shippedLine
		if err := json.Unmarshal([]byte(line), &one); err != nil || one.ID == "" || len(one.Record) == 0 {
			t.Fatalf("%v: %q", err, line)
		}
		ids[one.ID]++
	}
	return ids
}

func TestAFileGetsEachAuditRecordOnceHoweverOftenItIsKilled(t *testing.T) {
	p, records := audited(t, 4)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	check := func(when string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ids := shippedLines(t, string(text))
		for id, n := range ids {
			if n != 1 {
				t.Errorf("%s: %s is there %d times", when, id, n)
			}
		}
		if len(ids) != records {
			t.Errorf("%s: %d of %d records", when, len(ids), records)
		}
	}
	p.interrupted(t, 12, "audit", "ship", "--to", file)
	check("after kills")
	whole, _ := os.ReadFile(file)
	cursor, err := filepath.Glob(filepath.Join(filepath.Dir(p.self), ".coder", "ship", "*.json"))
	if err != nil || len(cursor) != 1 {
		t.Fatalf("%v, %v", cursor, err)
	}
	// The worst moments: all is written but the cursor knows nothing, and a line is only half there.
	for _, cut := range []int{0, 1, 30, len(whole) / 2} {
		if err := os.WriteFile(file, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(cursor[0]); err != nil {
			t.Fatal(err)
		}
		p.interrupted(t, 2, "audit", "ship", "--to", file)
		check(fmt.Sprintf("without a cursor and %d bytes", cut))
	}
	if out, stderr, code := p.run("audit", "ship", "--to", file); code != 0 || out != "Shipped 0 records of 0 sessions.\n" {
		t.Errorf("%d %q %s", code, out, stderr)
	}
	// After a rotation only what is new is written.
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := p.run("-p", "--session-id", "new", "--script", p.file("one", "call read {\"path\": \"a.txt\"}\n---\nsay done\n"), "go"); code != 0 {
		t.Fatalf("%d %s", code, stderr)
	}
	records = 2
	p.interrupted(t, 3, "audit", "ship", "--to", file)
	check("after a rotation")
}

func TestSyslogGetsEveryAuditRecord(t *testing.T) {
	p, records := audited(t, 2)
	socket := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ids := make(chan map[string]int, 1)
	go func() {
		got, buf := map[string]int{}, make([]byte, 64<<10)
		for {
			n, err := l.Read(buf)
			if err != nil || string(buf[:n]) == "end" {
				ids <- got
				return
			}
			var one shippedLine
			if at := bytes.IndexByte(buf[:n], '{'); at > 0 && json.Unmarshal(buf[at:n], &one) == nil {
				got[one.ID]++
			}
		}
	}()
	p.interrupted(t, 6, "audit", "ship", "--to", "syslog:"+socket)
	c, err := net.Dial("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "end")
	if got := <-ids; len(got) != records {
		t.Errorf("%d of %d records", len(got), records)
	}
}

func TestACollectorGetsEveryAuditRecord(t *testing.T) {
	p, records := audited(t, 3)
	var mu sync.Mutex // guards ids and requests
	ids, requests := map[string]int{}, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests%3 == 2 { // not taken
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var logs struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct {
						Body struct{ StringValue string }
					}
				}
			}
		}
		if err := json.Unmarshal(body, &logs); err != nil || r.URL.Path != "/v1/logs" || r.Header.Get("X-Key") != "k" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, one := range logs.ResourceLogs[0].ScopeLogs[0].LogRecords {
			for id := range shippedLines(t, one.Body.StringValue+"\n") {
				ids[id]++
			}
		}
		if requests%3 == 0 && requests < 9 { // taken, but the answer is lost
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	p.env = append(p.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+s.URL, "OTEL_EXPORTER_OTLP_HEADERS=X-Key=k", "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none")
	ended := 0
	for range 30 {
		if _, _, code := p.run("audit", "ship", "--to", "otlp"); code == 0 {
			ended++
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != records || ended != 1 {
		t.Errorf("%d of %d records, %d runs ended well", len(ids), records, ended)
	}
}
