import { defineErrors } from '../contract/errors.js'

/** Errors of the doors themselves. */
export const HttpErrors = defineErrors({
  malformed_json: { status: 400, message: 'the body is not valid JSON' },
  privileged_only: {
    status: 403,
    message: 'this route is privileged and the listener is bound beyond loopback; use the Unix socket',
  },
  request_timeout: { status: 408, message: 'the request did not arrive in time; send it again' },
  unsupported_media_type: { status: 415, message: 'send JSON with content-type application/json' },
  unprocessable: { status: 422, message: 'the request does not match the schema of this route' },
  expectation_failed: { status: 417, message: 'the only supported value of the Expect header is 100-continue' },
  upgrade_required: { status: 426, message: 'this route is a WebSocket (version 13); open it with an upgrade request' },
  headers_too_large: { status: 431, message: 'the header fields are too large' },
  reply_invalid: { status: 500, message: 'the reply does not match its schema' },
  reloading: { status: 503, message: 'the part of the daemon that serves this is being replaced; try again' },
})
