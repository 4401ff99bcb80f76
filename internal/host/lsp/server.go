package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/clip"
)

// Time limits.
const (
	startLimit    = 30 * time.Second       // to start and initialize
	requestLimit  = 30 * time.Second       // to answer a request
	diagnoseLimit = 15 * time.Second       // to diagnose a file
	surveyLimit   = 15 * time.Second       // to diagnose a project
	stopLimit     = 500 * time.Millisecond // to exit when asked
	settleTime    = 250 * time.Millisecond // silence after which diagnostics count as complete
	longSettle    = time.Second            // the same after an empty list that may be incomplete
	retryPause    = 100 * time.Millisecond // before repeating a canceled request
	status        = "status"               // token for the work of a server that announces idleness; real tokens are JSON
	maxBusy       = 1000                   // limit on counted work items
)

// server is a running language server of one project.
type server struct {
	kind Kind
	top  string // workspace root
	root string // project root
	conn *conn
	talk sync.WaitGroup // the connection's goroutine

	sync sync.Mutex // held while sending changes; guards the fields below
	docs map[string]*document
	uses int // counter of document uses
	disk snapshot

	wantsSave bool        // set before first use
	stopping  atomic.Bool // the server was asked to exit

	mu      sync.Mutex // guards the fields below
	pulls   bool       // answers diagnostic requests
	heard   map[string]published
	serial  int                 // counter of publications
	busy    map[string]struct{} // work that the server reports as in progress
	ill     string              // why it cannot tell what is wrong with code; "" if it can
	changed chan struct{}       // closed and replaced when one of these fields changes
}

func newServer(k Kind, top, root string, l line) *server {
	s := &server{
		kind: k, top: top, root: root, conn: &conn{
			line: l, wake: make(chan struct{}, 1), done: make(chan struct{}), room: maxOutbox,
			pending: make(map[int64]chan message),
		},
		docs: make(map[string]*document), heard: make(map[string]published),
		busy: make(map[string]struct{}), changed: make(chan struct{}),
	}
	if k.rests {
		s.busy[status] = struct{}{}
	}
	s.conn.ask, s.conn.tell = s.onRequest, s.onNotification
	return s
}

func (s *server) introduce(ctx context.Context, o Options) error {
	init := s.kind.Init
	if s.kind.options != nil {
		init = s.kind.options(o)
	}
	s.disk = s.scan(ctx, nil)
	var reply struct {
		Capabilities struct {
			TextDocumentSync   json.RawMessage `json:"textDocumentSync"`
			DiagnosticProvider json.RawMessage `json:"diagnosticProvider"`
			PositionEncoding   string          `json:"positionEncoding"`
		} `json:"capabilities"`
	}
	yes := map[string]any{"dynamicRegistration": true}
	if err := s.request(ctx, startLimit, "initialize", map[string]any{
		"processId":             watched(),
		"clientInfo":            map[string]any{"name": o.Program, "version": o.Version},
		"rootPath":              s.root,
		"rootUri":               uriOf(s.root),
		"workspaceFolders":      s.folders(),
		"initializationOptions": init,
		"capabilities": map[string]any{
			"general":      map[string]any{"positionEncodings": []string{"utf-16"}},
			"window":       map[string]any{"workDoneProgress": true},
			"experimental": map[string]any{"serverStatusNotification": true},
			"workspace": map[string]any{
				"configuration": true, "workspaceFolders": true,
				"didChangeConfiguration": yes, "didChangeWatchedFiles": yes,
				"diagnostics": map[string]any{"refreshSupport": true},
			},
			"textDocument": map[string]any{
				"synchronization":    map[string]any{"dynamicRegistration": true, "didSave": true},
				"publishDiagnostics": map[string]any{"versionSupport": true},
				"diagnostic":         yes,
				"definition":         map[string]any{"linkSupport": true},
				"references":         map[string]any{},
				"hover":              map[string]any{"contentFormat": []string{"markdown", "plaintext"}},
			},
		},
	}, &reply); err != nil {
		return err
	}
	if e := reply.Capabilities.PositionEncoding; e != "" && e != "utf-16" {
		return fmt.Errorf("%s counts characters in %s, which coder did not offer", s.kind.Name, e)
	}
	if raw := reply.Capabilities.TextDocumentSync; given(raw) { // a number, which means the default, or an object
		var how struct {
			Save json.RawMessage `json:"save"`
		}
		s.wantsSave = json.Unmarshal(raw, &how) != nil || given(how.Save)
	}
	s.mu.Lock()
	s.pulls = given(reply.Capabilities.DiagnosticProvider)
	s.mu.Unlock()
	err := s.conn.notify("initialized", struct{}{})
	if s.kind.Settings != nil {
		err = errors.Join(err, s.conn.notify("workspace/didChangeConfiguration", map[string]any{"settings": s.kind.Settings}))
	}
	return err
}

func (s *server) folders() any {
	return []map[string]any{{"uri": uriOf(s.root), "name": filepath.Base(s.root)}}
}

// given reports whether a capability is present: true or an object.
func given(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "false"
}

// request sends a request with a time limit. A server that stays completely silent until the limit
// counts as dead.
func (s *server) request(ctx context.Context, limit time.Duration, method string, params, result any) error {
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	heard := s.conn.heard.Load()
	err := s.conn.call(wait, method, params, result)
	var refusal *replyError
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, errGone):
		return err
	case errors.As(err, &refusal):
		return fmt.Errorf("%s: %w", s.kind.Name, err)
	case wait.Err() == nil:
		return fmt.Errorf("%s: %s: %w", s.kind.Name, method, err)
	}
	if s.conn.heard.Load() == heard {
		s.conn.end(errors.New("not responding"))
	}
	return fmt.Errorf("%s %w within %v", s.kind.Name, errSlow, limit)
}

func (s *server) onRequest(method string, params json.RawMessage) (any, error) {
	switch method {
	case "workspace/configuration":
		var q struct {
			Items []struct {
				Section string `json:"section"`
			} `json:"items"`
		}
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		list := make([]any, len(q.Items))
		for i, item := range q.Items {
			list[i] = s.kind.Settings[item.Section]
		}
		return list, nil
	case "workspace/workspaceFolders":
		return s.folders(), nil
	case "workspace/applyEdit":
		return map[string]any{"applied": false, "failureReason": "files are only changed when asked to"}, nil
	case "window/showDocument":
		return map[string]any{"success": false}, nil
	case "client/registerCapability":
		var q struct {
			Registrations []struct {
				Method string `json:"method"`
			} `json:"registrations"`
		}
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		for _, r := range q.Registrations {
			if r.Method == "textDocument/diagnostic" { // the server offers diagnostic requests
				s.update(func() { s.pulls = true })
			}
		}
		return nil, nil
	case "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest",
		"workspace/diagnostic/refresh", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh",
		"workspace/inlineValue/refresh", "workspace/codeLens/refresh", "workspace/foldingRange/refresh":
		return nil, nil
	}
	return nil, &replyError{methodNotFound, "not supported: " + clip.Text(method, 100)}
}

func (s *server) onNotification(method string, params json.RawMessage) {
	switch method {
	case "textDocument/publishDiagnostics":
		s.publish(params)
	case "$/progress":
		var p struct {
			Token json.RawMessage `json:"token"`
			Value struct {
				Kind string `json:"kind"`
			} `json:"value"`
		}
		if json.Unmarshal(params, &p) != nil || len(p.Token) > 1000 {
			return
		}
		switch token := string(p.Token); p.Value.Kind {
		case "begin":
			s.update(func() {
				if len(s.busy) < maxBusy {
					s.busy[token] = struct{}{}
				}
			})
		case "end":
			s.update(func() { delete(s.busy, token) })
		}
	case "experimental/serverStatus":
		var p struct {
			Health    string `json:"health"`
			Quiescent bool   `json:"quiescent"`
			Message   string `json:"message"`
		}
		if json.Unmarshal(params, &p) != nil {
			return
		}
		s.update(func() {
			delete(s.busy, status)
			if !p.Quiescent {
				s.busy[status] = struct{}{}
			}
			s.ill = ""
			if p.Health == "error" {
				s.ill = cmp.Or(clip.Text(p.Message, maxMessage), "the server is not well")
			}
		})
	}
}

// update changes fields guarded by mu and wakes those waiting for a change.
func (s *server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) stop() {
	s.stopping.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if s.conn.call(ctx, "shutdown", nil, nil) == nil && s.conn.notify("exit", nil) == nil {
		select {
		case <-s.conn.done:
		case <-ctx.Done():
		}
	}
	s.conn.end(errors.New("the server was stopped"))
}

// alive reports whether the server is running and not stopping.
func (s *server) alive() bool {
	select {
	case <-s.conn.done:
		return false
	default:
		return !s.stopping.Load()
	}
}
