"""How the clients of a broker of the tests must connect: in the clear, with SASL, with TLS."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka.software import java_tool, missing_java

_STORE_PASSWORD = "only-for-tests"
_NAME = "CN=127.0.0.1"


@dataclass
class Security:
    """The protocol of the clients' listener, and who may connect where it asks for a password.

    With TLS, `prepare` makes a certificate that signs itself; `cafile` is what clients trust.
    """

    protocol: str = "PLAINTEXT"
    users: dict[str, str] = field(default_factory=dict)
    cafile: Path | None = None

    @property
    def _tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def prepare(self, folder: Path) -> None:
        """Make the certificate, if the protocol needs one."""
        if not self._tls:
            return
        self._store = folder / "broker.p12"
        self.cafile = folder / "ca.pem"
        store = ("-keystore", str(self._store), "-storepass", _STORE_PASSWORD, "-alias", "broker")
        _keytool(
            *("-genkeypair", *store, "-storetype", "PKCS12", "-dname", _NAME, "-validity", "2"),
            *("-keyalg", "EC", "-groupname", "secp256r1", "-ext", "san=ip:127.0.0.1"),
            *("-ext", "bc:critical=ca:true", "-ext", "ku=keyCertSign,digitalSignature"),
        )
        _keytool("-exportcert", *store, "-rfc", "-file", str(self.cafile))

    def broker_settings(self) -> dict[str, str]:
        """What a broker needs to ask this of its clients; `prepare` comes first."""
        listener = "listener.name.client."
        settings: dict[str, str] = {}
        if self._tls:
            settings |= {
                f"{listener}ssl.keystore.type": "PKCS12",
                f"{listener}ssl.keystore.location": str(self._store),
                f"{listener}ssl.keystore.password": _STORE_PASSWORD,
            }
        if self.protocol.startswith("SASL"):
            known = " ".join(f'user_{user}="{word}"' for user, word in self.users.items())
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN",
                f"{listener}sasl.enabled.mechanisms": "PLAIN",
                f"{listener}plain.sasl.jaas.config": f"{module} required {known};",
            }
        return settings


PLAINTEXT = Security()


def _keytool(*arguments: str) -> None:
    tool = java_tool("keytool")
    assert tool is not None, missing_java()
    quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
    subprocess.run([tool, *quick, *arguments], check=True, capture_output=True, timeout=60)
