package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/core/clip"
	"coder/internal/core/message"
)

// Time limits.
const (
	startTimeout    = 30 * time.Second       // to start and initialize
	requestTimeout  = 30 * time.Second       // to answer a request
	diagnoseTimeout = 15 * time.Second       // to diagnose a file
	surveyTimeout   = 15 * time.Second       // to diagnose a project
	stopTimeout     = 500 * time.Millisecond // to exit when asked
	settleTime      = 250 * time.Millisecond // silence after which diagnostics count as complete
	longSettleTime  = time.Second            // settleTime after an empty list, which may be incomplete
	retryPause      = 100 * time.Millisecond // before repeating a canceled request
	// token for the work of a server that announces idleness; real tokens are JSON
	idleToken    = "status"
	maxBusyItems = 1000 // limit on counted work items
)

// server is a running language server of one project.
type server struct {
	kind      Kind
	top       string // workspace root
	root      string // project root
	conn      *conn
	connGroup sync.WaitGroup // the connection's goroutine

	syncMu    sync.Mutex // held while sending changes; guards the fields below
	docs      map[string]*document
	uses      int // counter of document uses
	diskState snapshot

	wantsSave bool        // set before first use
	stopping  atomic.Bool // the server was asked to exit

	mu           sync.Mutex // guards the fields below
	supportsPull bool       // answers diagnostic requests
	publications map[string]publication
	serial       int                 // counter of publications
	busy         map[string]struct{} // work that the server reports as in progress
	failure      string              // why it cannot tell what is wrong with code; "" if it can
	changed      chan struct{}       // closed and replaced when one of these fields changes
}

func newServer(k Kind, top, root string, l transport) *server {
	s := &server{
		kind: k, top: top, root: root, conn: &conn{
			transport: l, wake: make(chan struct{}, 1), done: make(chan struct{}), outboxLimit: maxOutbox,
			pending: make(map[int64]chan rpcMessage),
		},
		docs: make(map[string]*document), publications: make(map[string]publication),
		busy: make(map[string]struct{}), changed: make(chan struct{}),
	}
	if k.announcesIdle {
		s.busy[idleToken] = struct{}{}
	}
	s.conn.onRequest, s.conn.onNotification = s.onRequest, s.onNotification
	return s
}

func (s *server) initialize(ctx context.Context, o Options) error {
	init := s.kind.Init
	if s.kind.initOptions != nil {
		init = s.kind.initOptions(o)
	}
	s.diskState = s.scan(ctx, nil)
	var reply struct {
		Capabilities struct {
			TextDocumentSync   json.RawMessage `json:"textDocumentSync"`
			DiagnosticProvider json.RawMessage `json:"diagnosticProvider"`
			PositionEncoding   string          `json:"positionEncoding"`
		} `json:"capabilities"`
	}
	yes := map[string]any{"dynamicRegistration": true}
	if err := s.request(ctx, startTimeout, "initialize", map[string]any{
		"processId":             watchedPID(),
		"clientInfo":            map[string]any{"name": o.Program, "version": o.Version},
		"rootPath":              s.root,
		"rootUri":               pathToURI(s.root),
		"workspaceFolders":      s.workspaceFolders(),
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
		return message.Errorf("%s counts characters in %s, which coder did not offer", s.kind.Name, e)
	}
	if raw := reply.Capabilities.TextDocumentSync; hasCapability(raw) { // a number, which means the default, or an object
		var how struct {
			Save json.RawMessage `json:"save"`
		}
		s.wantsSave = json.Unmarshal(raw, &how) != nil || hasCapability(how.Save)
	}
	s.mu.Lock()
	s.supportsPull = hasCapability(reply.Capabilities.DiagnosticProvider)
	s.mu.Unlock()
	err := s.conn.notify("initialized", struct{}{})
	if s.kind.Settings != nil {
		err = errors.Join(err, s.conn.notify("workspace/didChangeConfiguration", map[string]any{"settings": s.kind.Settings}))
	}
	return err
}

func (s *server) workspaceFolders() any {
	return []map[string]any{{"uri": pathToURI(s.root), "name": filepath.Base(s.root)}}
}

// hasCapability reports whether a capability is present: true or an object.
func hasCapability(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "false"
}

// request sends a request with a time limit. A server that stays completely silent until the limit
// counts as dead.
func (s *server) request(ctx context.Context, limit time.Duration, method string, params, result any) error {
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	heard := s.conn.received.Load()
	err := s.conn.call(wait, method, params, result)
	var refusal *replyError
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, errServerExited):
		return err
	case errors.As(err, &refusal):
		return message.Errorf("%s: %w", s.kind.Name, err)
	case wait.Err() == nil:
		return message.Errorf("%s: %s: %w", s.kind.Name, method, err)
	}
	if s.conn.received.Load() == heard {
		s.conn.closeWith(errors.New("not responding"))
	}
	return message.Errorf("%s %w within %v", s.kind.Name, errTimeout, limit)
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
		return s.workspaceFolders(), nil
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
				s.update(func() { s.supportsPull = true })
			}
		}
		return nil, nil
	case "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest",
		"workspace/diagnostic/refresh", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh",
		"workspace/inlineValue/refresh", "workspace/codeLens/refresh", "workspace/foldingRange/refresh":
		return nil, nil
	}
	return nil, &replyError{methodNotFound, "not supported: " + clip.Truncate(method, 100)}
}

func (s *server) onNotification(method string, params json.RawMessage) {
	switch method {
	case "textDocument/publishDiagnostics":
		s.onPublish(params)
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
				if len(s.busy) < maxBusyItems {
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
			delete(s.busy, idleToken)
			if !p.Quiescent {
				s.busy[idleToken] = struct{}{}
			}
			s.failure = ""
			if p.Health == "error" {
				s.failure = cmp.Or(clip.Truncate(p.Message, maxMessage), "the server is not well")
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
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if s.conn.call(ctx, "shutdown", nil, nil) == nil && s.conn.notify("exit", nil) == nil {
		select {
		case <-s.conn.done:
		case <-ctx.Done():
		}
	}
	s.conn.closeWith(errors.New("the server was stopped"))
}

// isAlive reports whether the server is running and not stopping.
func (s *server) isAlive() bool {
	select {
	case <-s.conn.done:
		return false
	default:
		return !s.stopping.Load()
	}
}
