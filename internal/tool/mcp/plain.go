package mcp

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"coder/internal/core/clip"
	"coder/internal/core/lazy"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	addressPattern = lazy.Regexp(`https?://[^\s"'<>]*[^\s"'<>:;,.)]`)
	// methodPattern matches how the library names the failed request.
	methodPattern  = lazy.Regexp(`rejected by transport: |connection closed: |(calling|sending) "[^"]*": `)
	versionPattern = lazy.Regexp(`unsupported protocol version: "([^"]*)"`)
	contentPattern = lazy.Regexp(`unsupported content type "?([^";]*)`)
)

// codeClosing to rejected are the codes of the library's own errors, as opposed to a server's answer.
const codeClosing, codeRejected = -32005, -32003

// plainError returns what is wrong with a server as a sentence for the
// user, without secrets in addresses and without library wording.
func (p *peer) plainError(err error) error {
	if errors.Is(err, errUnauthorised) {
		return err
	}
	text := err.Error()
	var wire *jsonrpc.Error
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	status, page := int(p.httpStatus.Load()), p.badContentType.Load()
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, sdk.ErrConnectionClosed) ||
		strings.HasSuffix(text, "EOF")
	if unreached := unreachableError(err); unreached != nil {
		return unreached
	}
	switch {
	case versionPattern().MatchString(text):
		return message.Errorf("unsupported protocol version %s", oneLine(versionPattern().FindStringSubmatch(text)[1]))
	case ended && page != nil:
		return message.Errorf("not an MCP server: the answer was %s", oneLine(*page))
	case contentPattern().MatchString(text):
		return message.Errorf("not an MCP server: the answer was %s",
			oneLine(contentPattern().FindStringSubmatch(text)[1]))
	case status >= http.StatusBadRequest && (ended || strings.Contains(text, http.StatusText(status))):
		return message.Errorf("the address answered %d %s; coder mcp get %s shows the settings", status,
			http.StatusText(status),
			oneLine(p.Name))
	case errors.As(err, &wire) && wire.Message != "" && (wire.Code < codeClosing || wire.Code > codeRejected):
		text = sanitize.ForeignText(wire.Message)
	case ended:
		return errors.New("the server closed the connection before answering")
	case errors.As(err, &shape), errors.As(err, &syntax), strings.Contains(text, "json: "),
		strings.Contains(text, "unmarshal"):
		return errors.New("the server's answer violates the protocol; its maker must fix that")
	}
	return errors.New(clip.Truncate(sanitize.Text(maskAddresses(methodPattern().ReplaceAllString(text, ""))), 2000))
}

// unreachableError explains why an address could not be reached, if that is the error.
func unreachableError(err error) error {
	var dns *net.DNSError
	var op *net.OpError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns):
		return message.Errorf("cannot reach the address: %s",
			dns.Err) // the rest repeats the host and names the resolver
	case errors.As(err, &op) && op.Op == "dial" && errors.As(err, &errno):
		return message.Errorf("cannot reach the address: %s", errno)
	}
	return nil
}

// maskAddresses masks possible secrets in the addresses of a text.
func maskAddresses(text string) string {
	return addressPattern().ReplaceAllStringFunc(text, func(found string) string {
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
