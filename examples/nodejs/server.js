// A webhook in JavaScript without dependencies: node server.js 8080
const http = require('http');

function sync({parent}) {
  const {name} = parent.metadata;
  const child = {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name}, data: {text: parent.spec.text}};
  return {status: {greeted: parent.spec.text}, children: [child]};
}

http.createServer((request, response) => {
  if (request.method !== 'POST' || request.headers['content-type'] !== 'application/json') {
    response.writeHead(415).end('expected a POST of application/json');
    return;
  }
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', () => {
    try {
      response.writeHead(200, {'Content-Type': 'application/json'}).end(JSON.stringify(sync(JSON.parse(Buffer.concat(parts)))));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
}).listen(Number(process.argv[2] || 8080), '127.0.0.1');
