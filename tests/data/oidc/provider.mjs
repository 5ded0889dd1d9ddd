// A real OpenID provider: `node provider.mjs SETTINGS`, a JSON file with `issuer`, `port`, `jwks` and `ttl`. Run by tests.
// Users log in by any name; whoever is named in `groups` is in these.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const settings = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const { default: Provider } = await import(pathToFileURL(settings.library).href);

const AUDIENCE = 'wms';
const SCOPES = 'compute.read compute.create compute.modify compute.cancel';
const ALG = settings.jwks.keys[0].alg;

const provider = new Provider(settings.issuer, {
  jwks: settings.jwks,
  clients: [
    {
      client_id: 'wms-cli',
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
      redirect_uris: [],
      response_types: [],
      application_type: 'native',
      id_token_signed_response_alg: ALG,
    },
    {
      client_id: 'robot',
      client_secret: 'a secret of tests',
      id_token_signed_response_alg: ALG,
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  cookies: { keys: ['cookies of tests'] },
  scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_, token) => ({
    'wlcg.ver': '1.0',
    'wlcg.groups': settings.groups[token.accountId ?? token.clientId] ?? [],
  }),
  issueRefreshToken: () => true,
  ttl: { AccessToken: settings.ttl, ClientCredentials: settings.ttl, DeviceCode: 600, Grant: 3600, RefreshToken: 3600, Session: 3600, Interaction: 600, IdToken: 600 },
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:wms',
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: SCOPES,
        audience: AUDIENCE,
        accessTokenTTL: settings.ttl,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: ALG } },
      }),
    },
  },
});
provider.on('server_error', (_, error) => console.error(error));
provider.listen(settings.port, '127.0.0.1', () => console.log('listens'));
