#!/bin/sh
# Creates a CA, a server and a client certificate, and a token: certificates.sh FOLDER
set -e
mkdir -p "$1"
cd "$1"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=authority -keyout authority.key -out ca.crt
for who in tls client; do
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$who" -keyout "$who.key" -out "$who.csr"
  printf 'subjectAltName=IP:127.0.0.1' > "$who.ext"
  openssl x509 -req -days 30 -in "$who.csr" -CA ca.crt -CAkey authority.key -CAcreateserial -extfile "$who.ext" -out "$who.crt"
done
openssl rand -hex 16 > token
