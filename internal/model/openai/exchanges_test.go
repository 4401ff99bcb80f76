package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"testing"

	"coder/internal/model/provider"
	"coder/internal/model/transport"
	"coder/testkit/providertest"
)

func TestExchanges(t *testing.T) {
	providertest.TestExchanges(t, "chat", func(t testing.TB, url string) provider.Provider {
		return client(t, transport.Options{BaseURL: url, SendReasoning: true})
	})
}

// cutReader gives out a body in pieces of one size and ends with an error.
type cutReader struct {
	rest []byte
	size int
	err  error
}

func (c *cutReader) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, c.err
	}
	n := copy(p, c.rest[:min(len(c.rest), max(c.size, 1))])
	c.rest = c.rest[n:]
	return n, nil
}

// read reads a body without a network.
func read(body io.Reader) (provider.Reply, error) {
	return collect(context.Background(), New(transport.Options{BaseURL: "http://nowhere", RoundTripper: answer{body}}))
}

// answer is a server that has this to say.
type answer struct{ body io.Reader }

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(a.body)}, nil
}

// However the network cuts a recording, the reply is the same.
func TestExchangesInPieces(t *testing.T) {
	for _, rec := range providertest.Exchanges(t, "chat") {
		for i, resp := range rec.Responses {
			want, wantErr := read(bytes.NewReader(resp.Body))
			if resp.Status != http.StatusOK {
				continue
			}
			for _, size := range []int{1, 2, 3, 7, 13, 64, 1021, 4099} {
				got, err := read(&cutReader{resp.Body, size, io.EOF})
				if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
					t.Errorf("%s %d in pieces of %d: %v, %+v; want %v, %+v", rec.Name, i, size, err, got, wantErr, want)
				}
			}
		}
	}
}
