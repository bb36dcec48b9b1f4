// What is compared with: a bare fastify that answers every request with the object in a file.
import { readFileSync } from 'node:fs'
import fastify from 'fastify'

const [path = '', file = ''] = process.argv.slice(2)
const body: unknown = JSON.parse(readFileSync(file, 'utf8'))
const app = fastify()
app.all('/*', async () => body)
await app.listen({ path })
