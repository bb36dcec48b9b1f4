// A bare echo, a process of its own: node echo.js SOCKET.
import fastify from 'fastify'

const app = fastify()
app.get('/', async () => ({}))
app.put('/echo/:id', async request => request.body)
await app.listen({ path: process.argv[2] as string })
