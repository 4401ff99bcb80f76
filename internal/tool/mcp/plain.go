package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"coder/internal/core/clip"
	"coder/internal/core/lazy"
	"coder/internal/core/sanitize"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	address = lazy.Regexp(`https?://[^\s"'<>]*[^\s"'<>:;,.)]`)
	// method matches how the library names the failed request.
	method  = lazy.Regexp(`rejected by transport: |connection closed: |(calling|sending) "[^"]*": `)
	version = lazy.Regexp(`unsupported protocol version: "([^"]*)"`)
	content = lazy.Regexp(`unsupported content type "?([^";]*)`)
)

// closing to rejected are the codes of the library's own errors, as opposed to a server's answer.
const closing, rejected = -32005, -32003

// plain returns what is wrong with a server as a sentence for the
// user, without secrets in addresses and without library wording.
func (p *peer) plain(err error) error {
	if errors.Is(err, errUnauthorised) {
		return err
	}
	text := err.Error()
	var wire *jsonrpc.Error
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	status, page := int(p.status.Load()), p.page.Load()
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, sdk.ErrConnectionClosed) || strings.HasSuffix(text, "EOF")
	if unreached := unreached(err); unreached != nil {
		return unreached
	}
	switch {
	case version().MatchString(text):
		return fmt.Errorf("unsupported protocol version %s", oneLine(version().FindStringSubmatch(text)[1]))
	case ended && page != nil:
		return fmt.Errorf("not an MCP server: the address sent %s", oneLine(*page))
	case content().MatchString(text):
		return fmt.Errorf("not an MCP server: the address sent %s", oneLine(content().FindStringSubmatch(text)[1]))
	case status >= http.StatusBadRequest && (ended || strings.Contains(text, http.StatusText(status))):
		return fmt.Errorf("the address answered %d %s; coder mcp get %s shows the settings", status, http.StatusText(status), oneLine(p.Name))
	case errors.As(err, &wire) && wire.Message != "" && (wire.Code < closing || wire.Code > rejected):
		text = sanitize.Theirs(wire.Message)
	case ended:
		return errors.New("the server closed the connection before answering")
	case errors.As(err, &shape), errors.As(err, &syntax), strings.Contains(text, "json: "), strings.Contains(text, "unmarshal"):
		return errors.New("the server's answer violates the protocol; its maker must fix that")
	}
	return errors.New(clip.Text(sanitize.Text(masked(method().ReplaceAllString(text, ""))), 2000))
}

// unreached explains why an address could not be reached, if that is the error.
func unreached(err error) error {
	var dns *net.DNSError
	var op *net.OpError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("cannot reach the address: %s", dns.Err) // the rest repeats the host and names the resolver
	case errors.As(err, &op) && op.Op == "dial" && errors.As(err, &errno):
		return fmt.Errorf("cannot reach the address: %s", errno)
	}
	return nil
}

// masked masks possible secrets in the addresses of a text.
func masked(text string) string {
	return address().ReplaceAllStringFunc(text, func(found string) string {
		u, err := url.Parse(found)
		if err != nil {
			before, _, _ := strings.Cut(found, "?")
			if _, after, ok := strings.Cut(before, "@"); ok {
				return "https://" + after
			}
			return before
		}
		if u.User == nil && u.RawQuery == "" && u.Fragment == "" {
			return found
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		return u.String()
	})
}
