package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"coder/internal/core/message"
)

// errorFilter forwards our own errors and drops errors caused by strangers' requests.
type errorFilter struct{ out io.Writer }

func (m errorFilter) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte("panic")) {
		return len(line), nil
	}
	return m.out.Write(line)
}

// listenWeb listens on the requested address, with a certificate if others can listen in.
func listenWeb(ctx context.Context, where string, now time.Time) (net.Listener, *tls.Certificate, error) {
	host, port := "127.0.0.1", "0"
	if where != "" {
		var err error
		host, port, err = net.SplitHostPort(where)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
			return nil, nil, usageErrorf("--listen must be an address such as 127.0.0.1:8080 or 192.168.1.5:8443, not %q", where)
		}
	}
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		cause := errors.Unwrap(err)
		if errno := syscall.Errno(0); errors.As(err, &errno) {
			cause = errno
		}
		return nil, nil, inputErrorf("cannot listen on %s: %v", net.JoinHostPort(host, port), cause)
	}
	if at.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return at, nil, nil
	}
	cert, err := newCertificate(host, now)
	if err != nil {
		return nil, nil, errors.Join(err, at.Close())
	}
	return at, cert, nil
}

// certificateValidity is a certificate's validity: longer than a run takes.
const certificateValidity = 365 * 24 * time.Hour

// newCertificate creates a certificate for this run, for a host and all addresses of this machine. Its
// key is only in memory.
func newCertificate(host string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, message.Errorf("create a certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, message.Errorf("create a certificate: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "coder web"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(certificateValidity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IPAddresses:           localAddresses(),
	}
	if host != "" && net.ParseIP(host) == nil {
		t.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, message.Errorf("create a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// certFingerprint returns a certificate's fingerprint as browsers show it.
func certFingerprint(cert *tls.Certificate) string {
	sum := sha256.Sum256(cert.Certificate[0])
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

// localAddresses returns this machine's addresses.
func localAddresses() (all []net.IP) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			all = append(all, n.IP)
		}
	}
	return all
}

// listenerAddresses returns the addresses, with port, at which a browser reaches the listener.
func listenerAddresses(at net.Addr, asked string) (all []string) {
	where := at.(*net.TCPAddr)
	port := strconv.Itoa(where.Port)
	if names := hostNames(asked); len(names) > 0 {
		return []string{net.JoinHostPort(names[0], port)}
	}
	if !where.IP.IsUnspecified() {
		return []string{net.JoinHostPort(where.IP.String(), port)}
	}
	for _, ip := range localAddresses() {
		if where.IP.To4() == nil || ip.To4() != nil {
			all = append(all, net.JoinHostPort(ip.String(), port))
		}
	}
	return all
}

// isLoopback reports whether only this machine reaches an address with a port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
