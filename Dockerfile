# DORAL as a service. Nothing but Python, the pinned requirements, and this package; it runs as a user without rights.
#
#   docker build --tag doral .
#   docker run --publish 127.0.0.1:8787:8787 --volume doral:/data doral
#
# The first start prints the key of an administrator. TLS ends at a proxy before it, or give --tls-cert and --tls-key.
FROM python:3.11-slim AS build
WORKDIR /build
COPY requirements/base.txt requirements/dev.txt requirements/
RUN python -m venv /opt/doral \
 && /opt/doral/bin/pip install --no-cache-dir --requirement requirements/base.txt \
 && /opt/doral/bin/pip install --no-cache-dir --constraint requirements/dev.txt "psycopg[binary,pool]"
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN /opt/doral/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home --home-dir /home/doral doral \
 && install --directory --owner doral --group doral /data /var/cache/doral
COPY --from=build /opt/doral /opt/doral
ENV PATH=/opt/doral/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DORAL_CACHE_DIR=/var/cache/doral \
    DORAL_STORAGE=sqlite:////data/campaigns.db
USER doral
WORKDIR /data
VOLUME ["/data", "/var/cache/doral"]
EXPOSE 8787
STOPSIGNAL SIGTERM
# Ready, and not only alive: kernels are compiled and the store can be written to.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8787/readyz', timeout=4)"]
ENTRYPOINT ["doral"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8787", "--allow-plain-http"]
