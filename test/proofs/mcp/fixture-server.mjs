// An MCP server with the tools that the conformance runner calls: each kind of content, an error, a schema with all of 2020-12.
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA='
const text = { type: 'text', text: 'This is a simple text response for testing.' }
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' }
const resource = (uri, mimeType, content) => ({ type: 'resource', resource: { uri, mimeType, text: content } })

const answers = {
  test_simple_text: [text],
  test_image_content: [image],
  test_audio_content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }],
  test_embedded_resource: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: [
    { type: 'text', text: 'Multiple content types test:' },
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  test_error_handling: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
  json_schema_2020_12_tool: [text],
}
const plain = { type: 'object', properties: {} }
const whole = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
  },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
}

const server = new Server({ name: 'fixture', version: '1' }, { capabilities: { tools: {} } })
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(answers).map(name => ({
    name,
    description: `Gives what the conformance runner expects of ${name}`,
    inputSchema: name.startsWith('json_schema') ? whole : plain,
  })),
}))
server.setRequestHandler(CallToolRequestSchema, ({ params: { name } }) => ({
  content: answers[name],
  ...(name === 'test_error_handling' && { isError: true }),
}))
await server.connect(new StdioServerTransport())
