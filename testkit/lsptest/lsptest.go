// Package lsptest is a language server for tests, which runs as a process of its
// own or as a goroutine and can misbehave in every way we know of. It reads and
// writes the protocol with code of its own.
package lsptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"

	"coder/internal/host/program"
)

// Env is the variable that makes a test binary a language server; its value is
// how the server behaves.
const Env = "LSP_TEST_SERVER"

// Tries is the variable that lists, separated by blanks, what a server that
// "tries" is to try when it is asked to hover: "write:FILE", "read:FILE",
// "env:NAME" and "dial:FILE", which holds an address. Files may begin with the
// names of variables. It answers with what it managed to do.
const Tries = "LSP_TEST_TRIES"

// Main is called first in TestMain: if this process is to be a language server
// it does not return.
func Main() {
	if how := os.Getenv(Env); how != "" {
		s := &Server{How: how, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Exit: os.Exit}
		s.Serve()
		os.Exit(0)
	}
}

// Pause is how long a server that takes its time does so.
const Pause = 125 * time.Millisecond

// Server is a language server for files of lines of words, named x.fake. A line
// that holds BAD is a mistake: an error, or with a ! at the end a warning. "def
// NAME" defines a name, every other NAME uses it. Hovering repeats the line up
// to the position; over log.fake it tells what the server has heard.
type Server struct {
	// How says what is special about it: "normal" for nothing.
	How      string
	In       io.Reader
	Out, Err io.Writer
	Exit     func(int) // ends the process, or what stands for it

	texts map[string]string // by URI
	asked int               // for diagnostics
	heard []string          // what we were told, method by method
	open  int               // questions the client has not answered
	later *message          // one of its own that waits until it has
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error"`
}

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// params is whatever we read of the parameters of any message.
type params struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Text    string `json:"text"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	ContentChanges []struct {
		Text string `json:"text"`
	} `json:"contentChanges"`
	Position position        `json:"position"`
	Changes  json.RawMessage `json:"changes"`
	ID       json.RawMessage `json:"id"`
}

// The error codes we use.
const (
	methodNotFound  = -32601
	serverCancelled = -32802
)

// Serve reads and answers until it is told to exit or there is no more to read.
func (s *Server) Serve() {
	s.texts = make(map[string]string)
	switch s.How {
	case "dies at once":
		fmt.Fprintln(s.Err, "error: no such component")
		s.Exit(3)
		return
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		_ = program.ConfinedCommand("sleep", "1000").Start()
	}
	in := bufio.NewReader(s.In)
	for {
		m, err := read(in)
		if err != nil && s.How == "clings" {
			time.Sleep(time.Hour)
		}
		if err != nil || m.Method == "exit" && s.How != "stubborn" {
			return
		}
		if s.How == "never begins" || s.How == "mute" && !strings.HasPrefix(m.Method, "initialize") {
			continue
		}
		s.heard = append(s.heard, m.Method)
		s.take(m)
	}
}

func read(in *bufio.Reader) (m message, err error) {
	size := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return m, err
		}
		if line == "\r\n" {
			break
		}
		if _, err := fmt.Sscanf(line, "Content-Length: %d\r\n", &size); err != nil {
			return m, err
		}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

func (s *Server) send(v map[string]any) {
	v["jsonrpc"] = "2.0"
	body, _ := json.Marshal(v)
	fmt.Fprintf(s.Out, "Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%s",
		len(body), body)
}

func (s *Server) notify(method string, params any) {
	s.send(map[string]any{"method": method, "params": params})
}

func (s *Server) reply(m message, result any) { s.send(map[string]any{"id": m.ID, "result": result}) }

func (s *Server) refuse(m message, code int, why string) {
	s.send(map[string]any{"id": m.ID, "error": map[string]any{"code": code, "message": why}})
}

func (s *Server) progress(kind string) {
	s.notify("$/progress", map[string]any{"token": "work", "value": map[string]any{"kind": kind}})
}

func (s *Server) status(v map[string]any) { s.notify("experimental/serverStatus", v) }

func (s *Server) take(m message) {
	var p params
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "initialize":
		s.begin(m)
	case "initialized":
		if s.How == "asks" {
			s.ask()
		}
		if s.How == "rests ill" {
			s.status(map[string]any{"health": "error", "quiescent": true, "message": "no project"})
		}
	case "":
		code := ""
		if m.Error != nil {
			code = strconv.Itoa(m.Error.Code)
		}
		s.heard[len(s.heard)-1] = fmt.Sprintf("answer %s %s%s", m.ID, m.Result, code)
		if s.open--; s.open == 0 && s.later != nil {
			s.take(*s.later)
		}
	case "textDocument/didOpen":
		s.texts[p.TextDocument.URI] = p.TextDocument.Text
		s.publish(p.TextDocument.URI, p.TextDocument.Version)
	case "textDocument/didChange":
		s.texts[p.TextDocument.URI] = p.ContentChanges[0].Text
		s.publish(p.TextDocument.URI, p.TextDocument.Version)
	case "textDocument/didClose":
		delete(s.texts, p.TextDocument.URI)
	case "workspace/didChangeWatchedFiles":
		s.heard[len(s.heard)-1] += " " + string(p.Changes)
	case "$/cancelRequest":
		s.heard[len(s.heard)-1] += " " + string(p.ID)
	case "textDocument/diagnostic":
		s.asked++
		switch {
		case s.How == "pull breaks off" && s.asked < 3:
			s.refuse(m, serverCancelled, "later")
		case s.How == "pull then busy" && s.asked == 1:
			s.progress("begin")
			s.reply(m, map[string]any{"kind": "full", "items": []any{}})
			time.Sleep(2 * Pause)
			s.progress("end")
		case s.How == "rests late" && s.asked == 1:
			s.reply(m, map[string]any{"kind": "full", "items": []any{}})
			time.Sleep(2 * Pause)
			s.status(map[string]any{"health": "ok", "quiescent": true})
		case s.How == "never rests" || s.How == "rests ill":
			s.reply(m, map[string]any{"kind": "full", "items": []any{}})
		case s.How == "asks":
			s.refuse(m, methodNotFound, "not really")
		default:
			s.reply(m, map[string]any{"kind": "full", "items": s.mistakes(p.TextDocument.URI)})
		}
	case "textDocument/hover":
		s.hover(m, p)
	case "textDocument/definition":
		s.reply(m, s.definition(p))
	case "textDocument/references":
		s.reply(m, s.places(s.wordAt(p)))
	case "shutdown":
		if s.How != "stubborn" {
			s.reply(m, nil)
		}
	}
}

func (s *Server) begin(m message) {
	can := map[string]any{"textDocumentSync": 1, "hoverProvider": true}
	switch s.How {
	case "garbage":
		fmt.Fprintln(s.Out, "Welcome to the language server!")
		return
	case "huge":
		fmt.Fprintf(s.Out, "Content-Length: %d\r\n\r\n", 64<<20+1)
		return
	case "half":
		fmt.Fprintf(s.Out, "Content-Length: 100\r\n\r\n{")
		s.Exit(1)
		return
	case "refuses":
		s.refuse(m, -32603, "no workspace")
		return
	case "slow":
		time.Sleep(40 * Pause)
	case "pull", "pull breaks off", "pull then busy", "rests late", "never rests", "rests ill":
		can["diagnosticProvider"] = map[string]any{"interFileDependencies": true}
	case "other units":
		can["positionEncoding"] = "utf-8"
	}
	s.reply(m, map[string]any{"capabilities": can})
}

// ask asks the client everything a server may ask.
func (s *Server) ask() {
	for i, q := range []struct{ method, params string }{
		{"workspace/configuration", `{"items":[{"section":"fake"},{"section":"other"}]}`},
		{"client/registerCapability", `{"registrations":[{"id":"1","method":"textDocument/diagnostic"}]}`},
		{"window/workDoneProgress/create", `{"token":"t"}`},
		{"workspace/applyEdit", `{"edit":{}}`},
		{"workspace/workspaceFolders", `null`},
		{"window/showMessageRequest", `{"type":1,"message":"?","actions":[{"title":"Yes"}]}`},
		{"window/showDocument", `{"uri":"file:///etc/passwd"}`},
		{"workspace/configuration", `"nonsense"`},
		{"strange/request", `{}`},
	} {
		s.send(map[string]any{"id": "q" + strconv.Itoa(i), "method": q.method, "params": json.RawMessage(q.params)})
		s.open++
	}
	s.notify("strange/notification", nil)
	s.notify("window/logMessage", map[string]any{"type": 1, "message": "x"})
	s.send(map[string]any{"id": 999, "result": "to nobody"})
	s.send(map[string]any{"id": "x", "result": "to nobody"})
	s.send(map[string]any{"id": nil, "error": map[string]any{"code": -32700, "message": "?"}})
}

// mistakes finds the lines that hold BAD.
func (s *Server) mistakes(uri string) []any {
	list := []any{}
	for i, line := range strings.Split(s.texts[uri], "\n") {
		before, rest, ok := strings.Cut(line, "BAD")
		if !ok {
			continue
		}
		from := len(utf16.Encode([]rune(before)))
		list = append(list, map[string]any{
			"range":    map[string]any{"start": position{i, from}, "end": position{i, from + 3}},
			"severity": 1 + strings.Count(rest, "!"), "code": 7, "source": "fake",
			"message": "bad" + strings.TrimRight(rest, "!"),
		})
	}
	return list
}

func (s *Server) publish(uri string, version int) {
	p := map[string]any{"uri": uri, "version": version, "diagnostics": s.mistakes(uri)}
	none := map[string]any{"uri": uri, "version": version, "diagnostics": []any{}}
	switch s.How {
	case "silent", "pull", "rests late", "never rests", "rests ill":
		return
	case "unversioned":
		delete(p, "version")
	case "empty first":
		s.notify("textDocument/publishDiagnostics", none)
		time.Sleep(Pause)
	case "empty for long":
		s.notify("textDocument/publishDiagnostics", none)
		time.Sleep(100 * Pause)
	case "busy":
		s.progress("begin")
		s.notify("textDocument/publishDiagnostics", none)
		time.Sleep(8 * Pause)
		s.progress("end")
	}
	s.notify("textDocument/publishDiagnostics", p)
}

func (s *Server) hover(m message, p params) {
	text := s.texts[p.TextDocument.URI]
	switch {
	case s.How == "tries":
		list := strings.Fields(os.Getenv(Tries))
		var said []string
		for _, one := range list {
			what, about, _ := strings.Cut(one, ":")
			file := os.ExpandEnv(about)
			var err error
			switch what {
			case "write":
				err = os.WriteFile(file, []byte("written\n"), 0o600)
			case "read":
				var text []byte
				if text, err = os.ReadFile(file); err == nil && len(text) == 0 {
					err = os.ErrNotExist // something empty lies over it
				}
			case "env":
				if os.Getenv(about) == "" {
					err = os.ErrNotExist
				}
			case "dial":
				// whoever meant to see it fail has to see that it is not there
				if address, unread := os.ReadFile(file); unread == nil {
					var c net.Conn
					if c, err = net.DialTimeout("tcp", string(address), 10*time.Second); err == nil {
						c.Close()
					}
				}
			}
			if err == nil {
				said = append(said, "could "+one)
			} else {
				said = append(said, "could not "+one)
			}
		}
		s.reply(m, map[string]any{"contents": strings.Join(said, "\n")})
	case s.How == "dies" && strings.Contains(text, "die") && os.Mkdir("died", 0o700) == nil: // the first in this directory
		fmt.Fprint(s.Err, strings.Repeat("noise\n", 10_000), "panic: hover\n")
		s.Exit(2)
	case s.How == "always dies" && strings.Contains(text, "die"):
		fmt.Fprintln(s.Err, "panic: hover")
		s.Exit(2)
	case s.How == "patient" && p.Position.Line == 0:
		s.progress("begin") // and no answer, until it is told not to bother
	case s.open > 0:
		s.later = &m
	case s.How == "large":
		s.reply(m, map[string]any{"contents": strings.Repeat("x", 2<<20)})
	case s.How == "wrong":
		s.reply(m, "a string")
	case s.How == "picky" && p.Position.Line == 0:
		s.refuse(m, -32603, "nothing there")
	case strings.HasSuffix(p.TextDocument.URI, "/log.fake"):
		s.reply(m, map[string]any{"contents": strings.Join(s.heard, "\n")})
	default:
		lines := strings.Split(text, "\n")
		if p.Position.Line >= len(lines) {
			s.reply(m, nil)
			return
		}
		units := utf16.Encode([]rune(lines[p.Position.Line])) // the line up to the position
		s.reply(m, map[string]any{"contents": map[string]any{
			"kind": "plaintext", "value": string(utf16.Decode(units[:min(len(units), p.Position.Character)])),
		}})
	}
}

// wordAt is the word a position is in, or just behind.
func (s *Server) wordAt(p params) string {
	lines := strings.Split(s.texts[p.TextDocument.URI], "\n")
	units := utf16.Encode([]rune(lines[p.Position.Line]))
	from, to := p.Position.Character, p.Position.Character
	for from > 0 && units[from-1] > ' ' {
		from--
	}
	for to < len(units) && units[to] > ' ' {
		to++
	}
	return string(utf16.Decode(units[from:to]))
}

func (s *Server) definition(p params) any {
	if elsewhere, ok := strings.CutPrefix(s.How, "points elsewhere "); ok {
		return map[string]any{"uri": "file://" + elsewhere, "range": map[string]any{}}
	}
	word := s.wordAt(p)
	list := s.places("def " + word)
	if word == "" || len(list) == 0 {
		return nil
	}
	if s.How == "links" {
		one := list[0].(map[string]any)
		return []any{map[string]any{"targetUri": one["uri"], "targetSelectionRange": one["range"]}}
	}
	return list[0]
}

// places finds the first occurrence of word in every line of every text.
func (s *Server) places(word string) []any {
	list := []any{}
	for uri, text := range s.texts {
		for i, line := range strings.Split(text, "\n") {
			if before, _, ok := strings.Cut(line, word); ok {
				at := position{i, len(utf16.Encode([]rune(before)))}
				list = append(list, map[string]any{"uri": uri, "range": map[string]any{"start": at, "end": at}})
			}
		}
	}
	return list
}
