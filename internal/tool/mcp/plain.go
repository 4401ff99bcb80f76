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
	// method is how the library says what was asked.
	method  = lazy.Regexp(`rejected by transport: |connection closed: |(calling|sending) "[^"]*": `)
	version = lazy.Regexp(`unsupported protocol version: "([^"]*)"`)
	content = lazy.Regexp(`unsupported content type "?([^";]*)`)
)

// closing to rejected are the codes of errors that are the library's own, and not
// a server's answer.
const closing, rejected = -32005, -32003

// plain is what is wrong with a server in a sentence for people, with no address
// that holds a secret and no words of a library.
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
		return fmt.Errorf("it speaks protocol version %s, which coder does not support", oneLine(version().FindStringSubmatch(text)[1]))
	case ended && page != nil:
		return fmt.Errorf("its address is not an MCP server: it sent %s", oneLine(*page))
	case content().MatchString(text):
		return fmt.Errorf("its address is not an MCP server: it sent %s", oneLine(content().FindStringSubmatch(text)[1]))
	case status >= http.StatusBadRequest && (ended || strings.Contains(text, http.StatusText(status))):
		return fmt.Errorf("its address answered %d %s; coder mcp get %s shows the settings", status, http.StatusText(status), oneLine(p.Name))
	case errors.As(err, &wire) && wire.Message != "" && (wire.Code < closing || wire.Code > rejected):
		text = sanitize.Theirs(wire.Message)
	case ended:
		return errors.New("it closed the connection before answering")
	case errors.As(err, &shape), errors.As(err, &syntax), strings.Contains(text, "json: "), strings.Contains(text, "unmarshal"):
		return errors.New("its answer violates the protocol; its maker must fix that")
	}
	return errors.New(clip.Text(sanitize.Text(masked(method().ReplaceAllString(text, ""))), 2000))
}

// unreached says why nobody was reached at an address, if that is what is wrong.
func unreached(err error) error {
	var dns *net.DNSError
	var op *net.OpError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("its address cannot be reached: %s", dns.Err) // the rest names the host once more, and who was asked
	case errors.As(err, &op) && op.Op == "dial" && errors.As(err, &errno):
		return fmt.Errorf("its address cannot be reached: %s", errno)
	}
	return nil
}

// masked is a text whose addresses have lost what may be secret in them.
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
