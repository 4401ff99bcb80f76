package transport

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"coder/internal/model/provider"
)

// A Dialect is what a server has told us to leave out or to say otherwise, for
// each of its models; D holds that, and its zero value says all. A Dialect is safe for concurrent use.
type Dialect[D comparable] struct {
	start  D
	mu     sync.Mutex // guards the field below
	learnt map[string]D
}

// Start sets what is known before anything was asked.
func (l *Dialect[D]) Start(d D) { l.start = d }

// of is what is known of a model.
func (l *Dialect[D]) of(model string) D {
	if d, ok := l.learnt[model]; ok {
		return d
	}
	return l.start
}

// Ask asks in the dialect that the server has for a model. If it complains about
// a word of ours, in lower case, and heed knows another way to say it, it is
// asked again.
func (l *Dialect[D]) Ask(model string, ask func(D) error, heed func(d D, complaint string) D) error {
	for {
		l.mu.Lock()
		d := l.of(model)
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
		if l.learnt == nil {
			l.learnt = make(map[string]D)
		}
		l.learnt[model] = heed(l.of(model), complaint)
		l.mu.Unlock()
	}
}

// Number is how a figure of a request is written; "" if there is none.
func Number(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

// SameTools reports whether two lists of tools are written in the same bytes.
func SameTools(a, b []provider.ToolSpec) bool {
	return slices.EqualFunc(a, b, func(a, b provider.ToolSpec) bool {
		return a.Name == b.Name && a.Doc == b.Doc && bytes.Equal(a.Schema, b.Schema)
	})
}
