package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A model that the endpoint does not have is refused with the nearest one, unless
// the person insists; those it has complete the command.
func TestModelsThatTheEndpointDoesNotHave(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write([]byte(`{"data": [{"id": "coder-small"}, {"id": "coder-large"}]}`))
	}))
	defer server.Close()
	s := newStudio(t, "", nil)
	s.Options.Script = ""
	s.Config.Provider.Kind, s.Config.Provider.BaseURL, s.Config.Provider.Model = "openai", server.URL+"/v1", "coder-small"
	for name, want := range map[string]string{
		"nosuch":      "unknown model nosuch; /model lists the models (/model nosuch force uses it anyway)",
		"coder-lareg": "unknown model coder-lareg; did you mean coder-large? (/model coder-lareg force uses it anyway)",
	} {
		was := s.ModelName()
		if _, err := (modelSwitcher{Models: s.Models}).Switch(t.Context(), name, false); err == nil || err.Error() != want || s.ModelName() != was {
			t.Errorf("%s: %v, and %s is in use", name, err, s.ModelName())
		}
	}
	asked = 0
	for range 2 {
		if got := s.FetchModelNames(t.Context()); !slices.Contains(got, "coder-small") || !slices.Contains(got, "coder-large") || len(got) != 2 {
			t.Errorf("offered: %s", strings.Join(got, ", "))
		}
	}
	if asked != 1 {
		t.Errorf("the endpoint was asked %d times", asked)
	}
	if _, err := (modelSwitcher{Models: s.Models}).Switch(t.Context(), "nosuch", true); err != nil || s.ModelName() != "nosuch" {
		t.Errorf("by force: %v, and %s is in use", err, s.ModelName())
	}
	s.Config.Provider.BaseURL = "http://127.0.0.1:1/v1" // one that does not answer
	if got := s.FetchModelNames(t.Context()); slices.Contains(got, "coder-large") {
		t.Errorf("of another endpoint: %s", strings.Join(got, ", "))
	}
}

// What an endpoint said last is known without asking it, also to the next process, and a
// model is taken that it has or may have.
func TestTheLastListOfAnEndpointIsRemembered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data": [{"id": "coder-small"}, {"id": "coder-large"}]}`))
	}))
	defer server.Close()
	s := newStudio(t, "", nil)
	s.Options.Script = ""
	s.Config.Provider.Kind, s.Config.Provider.BaseURL, s.Config.Provider.Model = "openai", server.URL+"/v1", "mine"
	if got := s.KnownModels(); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("at first: %q", got)
	}
	if err := s.CheckModelExists(t.Context(), "coder-large"); err != nil {
		t.Error(err)
	}
	if err := s.CheckModelExists(t.Context(), "nosuch"); err == nil {
		t.Error("a model that the endpoint does not have is taken")
	}
	if got, want := s.KnownModels(), []string{"mine", "coder-large", "coder-small"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.modelLists = serverFacts[[]string]{} // as in the next process
	if got := s.KnownModels(); len(got) != 3 {
		t.Errorf("the next process knows of %q", got)
	}
	f := doctor{s.Workspace}.examineProvider(t.Context())
	if f.State != StateNoted || !strings.Contains(f.Advice, "does not list this model") {
		t.Errorf("of a model that is not on the list: %+v", f)
	}
	s.Config.Provider.BaseURL = "http://127.0.0.1:1/v1" // one that does not answer
	if err := s.CheckModelExists(t.Context(), "whatever"); err != nil || len(s.KnownModels()) != 1 {
		t.Errorf("%v, %q", err, s.KnownModels())
	}
}

func TestAModelThatNobodyChoseIsAssumedOfAGateway(t *testing.T) {
	for name, tt := range map[string]struct {
		env  []string
		want bool
	}{
		"a gateway":              {[]string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, true},
		"the vendor":             {[]string{"OPENAI_API_KEY=k"}, false},
		"the vendor, by address": {[]string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=https://api.openai.com/v1/"}, false},
		"chosen":                 {[]string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=m"}, false},
		"nothing":                {nil, false},
	} {
		s := newStudio(t, "", func(env *Env, o *Options) { env.Environ, o.Script = append(env.Environ, tt.env...), "" })
		if got := s.IsModelAssumed(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
