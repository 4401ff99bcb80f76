package openai

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
)

func TestModelsAsksBesideTheCompletions(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer key-of-mine" {
			t.Errorf("asked %s %s %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}],"error":"bad key key-of-mine"}`)
	}))
	defer s.Close()
	for _, base := range []string{"/v1", "/v1/", "/v1/chat/completions"} {
		list, err := New(transport.Options{BaseURL: s.URL + base, APIKey: "key-of-mine"}).Models(t.Context())
		if err != nil || len(list) != 1 || list[0].Name != "m" {
			t.Errorf("%s: %v, %v", base, list, err)
		}
	}
	status = http.StatusUnauthorized
	_, err := New(transport.Options{BaseURL: s.URL + "/v1", APIKey: "key-of-mine"}).Models(t.Context())
	if !errors.Is(err, provider.ErrAuth) || strings.Contains(err.Error(), "key-of-mine") {
		t.Errorf("err = %v", err)
	}
}
