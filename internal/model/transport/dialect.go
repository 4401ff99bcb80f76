package transport

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"coder/internal/model/provider"
)

// A Dialect is what a server has told us to leave out or to say otherwise; D
// holds that, and its zero value says all. A Dialect is safe for concurrent use.
type Dialect[D comparable] struct {
	mu     sync.Mutex // guards the field below
	learnt D
}

// Start sets what is known before anything was asked.
func (l *Dialect[D]) Start(d D) { l.learnt = d }

// Ask asks in the dialect of the server. If it complains about a word of ours,
// in lower case, and heed knows another way to say it, it is asked again.
func (l *Dialect[D]) Ask(ask func(D) error, heed func(d D, complaint string) D) error {
	for {
		l.mu.Lock()
		d := l.learnt
		l.mu.Unlock()
		err := ask(d)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || !slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}, e.Status) {
			return err
		}
		complaint := strings.ToLower(e.Error())
		if heed(d, complaint) == d {
			return err
		}
		l.mu.Lock()
		l.learnt = heed(l.learnt, complaint)
		l.mu.Unlock()
	}
}

// SameTools reports whether two lists of tools are written in the same bytes.
func SameTools(a, b []provider.ToolSpec) bool {
	return slices.EqualFunc(a, b, func(a, b provider.ToolSpec) bool {
		return a.Name == b.Name && a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema)
	})
}
